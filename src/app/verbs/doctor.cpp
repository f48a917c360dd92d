#include "app/verbs/doctor.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>
#include "app/verbs/main_verb.h"
#include "app/verbs/verbs.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }
std::string size_or_unknown(std::int64_t bytes) {
  return bytes > 0 ? human_bytes(static_cast<double>(bytes)) : "unknown";
}

std::string affinity_advice(const Machine& m) {
  const int threads = m.omp_threads.empty() ? 0 : std::atoi(m.omp_threads.c_str());
  if (threads > m.allowed)
    return fmt::format(
        "OMP_NUM_THREADS={} threads share {} processors: start with mpirun --bind-to none --map-by "
        "slot:PE={}, or set OMP_NUM_THREADS={}",
        threads, m.allowed, threads, m.allowed);
  if (m.allowed == 1 && m.processors > 1 && m.local_ranks < m.processors)
    return "all threads of a rank share one processor: start with mpirun --bind-to none (or --map-by "
           "slot:PE=K for K threads), srun --cpus-per-task=K";
  if (m.local_ranks > 1 && m.allowed == m.processors && threads * m.local_ranks > m.processors)
    return fmt::format("{} ranks of {} threads share {} processors: set device.threads={}", m.local_ranks,
                       threads, m.processors, std::max(1, m.processors / m.local_ranks));
  return "";
}

bool binds_every_rank_alike(const Machine& m) {
  const auto binds = [](const std::string& variable) {
    return variable.starts_with("OMP_PROC_BIND=") && !variable.ends_with("=false");
  };
  return m.local_ranks > 1 && m.allowed == m.processors && std::any_of(m.omp.begin(), m.omp.end(), binds);
}

}  // namespace

std::vector<Finding> examine(const Machine& m) {
  std::vector<Finding> findings;
  const auto add = [&](const char* name, const std::string& value, const std::string& advice = "") {
    findings.push_back({name, value, advice});
  };
  const auto add_judged = [&](const char* name, const std::string& value, bool is_bad, const char* advice) {
    add(name, value, is_bad ? advice : "");
  };
  add("host", or_unknown(m.host));
  add("processor", fmt::format("{}, {} processors", or_unknown(m.processor), m.processors));
  add("affinity", fmt::format("{} of {} processors may be used by this process", m.allowed, m.processors),
      affinity_advice(m));
  add_judged("instructions", m.instruction_sets, m.instruction_sets.find("avx2") == std::string::npos,
             "without avx2 everything runs, several times slower: choose newer nodes");
  add_judged("memory", fmt::format("{}, {} free", size_or_unknown(m.memory), size_or_unknown(m.memory_free)),
             m.memory > 0 && m.memory_free < m.memory / 10,
             "less than a tenth is free: end what else runs here, or set memory.device_limit");
  add_judged(
      "memory limit",
      m.memory_limit > 0 ? size_or_unknown(m.memory_limit) + " for this job (cgroup)" : "none (cgroup)",
      m.memory_limit > 0 && m.memory_limit < m.memory,
      "the job is killed above this, without a message: set memory.device_limit below limit / ranks, or ask "
      "for more (sbatch --mem)");
  add_judged("disk", size_or_unknown(m.disk_free) + " free in this directory",
             static_cast<double>(m.disk_free) < 5 * gib,
             "a checkpoint takes 12 bytes per parameter: make room, or put run.dir elsewhere");
  add_judged("shared memory", size_or_unknown(m.shared_memory_free) + " free in /dev/shm",
             static_cast<double>(m.shared_memory_free) < 0.0625 * gib * std::max(1, m.local_ranks),
             "ranks of one machine exchange messages through it: enlarge it (docker --shm-size=1g, mount -o "
             "remount,size=1g /dev/shm)");
  add("messages", or_unknown(m.messages));
  add("graphics", or_unknown(m.graphics),
      m.gpus > 0 && m.local_ranks > m.gpus ? fmt::format("{} ranks share {} GPU{}: start one rank for each",
                                                         m.local_ranks, m.gpus, m.gpus == 1 ? "" : "s")
                                           : "");
  add_judged("its libraries", or_unknown(m.graphics_libraries),
             m.gpus > 0 && m.graphics_libraries.find("not found") != std::string::npos,
             "load the module of CUDA, or add the folder of what is not found to LD_LIBRARY_PATH");
  if (!m.attention_plans.empty()) add("plans on paper", m.attention_plans);
  add_judged("huge pages", or_unknown(m.huge_pages), m.huge_pages == "never",
             "large matrices miss the page cache less with them: echo madvise > "
             "/sys/kernel/mm/transparent_hugepage/enabled");
  add_judged("locked memory",
             m.locked_limit < 0 ? "no limit" : human_bytes(static_cast<double>(m.locked_limit)),
             m.locked_limit >= 0 && static_cast<double>(m.locked_limit) < 0.0625 * gib,
             "InfiniBand needs more: ulimit -l unlimited (in /etc/security/limits.conf, or Slurm's "
             "PropagateResourceLimitsExcept=MEMLOCK)");
  add_judged("OpenMP", m.omp.empty() ? "no OMP_ variables" : join(m.omp, " "), binds_every_rank_alike(m),
             "every rank would bind its threads to the same processors: unset OMP_PROC_BIND, or let the "
             "launcher bind ranks");
  return findings;
}

std::string report(const std::vector<Finding>& findings) {
  std::string text;
  int advised = 0;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<14} {}\n", finding.name, finding.value);
    if (finding.advice.empty()) continue;
    ++advised;
    text += fmt::format("{:<14}   -> {}\n", "", finding.advice);
  }
  return text + (advised == 0
                     ? "Nothing to do.\n"
                     : fmt::format("{} thing{} to look at, marked ->.\n", advised, advised == 1 ? "" : "s"));
}

int doctor(const Arguments& arguments, const Config& config) {
  if (!arguments.tune.empty()) return tune(arguments, config);
  print(report(examine(look_at_this_machine())));
  return 0;
}

}  // namespace mindpipe
