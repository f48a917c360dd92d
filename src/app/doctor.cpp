#include "app/doctor.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>
#include "app/main_verb.h"
#include "app/verbs.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : text; }
std::string size_or_unknown(std::int64_t bytes) {
  return bytes > 0 ? human_bytes(static_cast<double>(bytes)) : "unknown";
}

Finding judge_affinity(const Machine& m) {
  const int threads = m.omp_threads.empty() ? 0 : std::atoi(m.omp_threads.c_str());
  Finding finding{"affinity",
                  fmt::format("{} of {} processors may be used by this process", m.allowed, m.processors),
                  ""};
  if (threads > m.allowed)
    finding.advice = fmt::format(
        "OMP_NUM_THREADS={} threads share {} processors: start with mpirun --bind-to none --map-by "
        "slot:PE={}, or set OMP_NUM_THREADS={}",
        threads, m.allowed, threads, m.allowed);
  else if (m.allowed == 1 && m.processors > 1 && m.local_ranks < m.processors)
    finding.advice =
        "all threads of a rank share one processor: start with mpirun --bind-to none (or --map-by slot:PE=K "
        "for K threads), srun "
        "--cpus-per-task=K";
  else if (m.local_ranks > 1 && m.allowed == m.processors && threads * m.local_ranks > m.processors)
    finding.advice =
        fmt::format("{} ranks of {} threads share {} processors: set device.threads={}", m.local_ranks,
                    threads, m.processors, std::max(1, m.processors / m.local_ranks));
  return finding;
}

Finding judge_memory(const Machine& m) {
  Finding finding{"memory",
                  fmt::format("{}, {} free", size_or_unknown(m.memory), size_or_unknown(m.memory_free)), ""};
  if (m.memory > 0 && m.memory_free < m.memory / 10)
    finding.advice = "less than a tenth is free: end what else runs here, or set memory.device_limit";
  return finding;
}

Finding judge_limit(const Machine& m) {
  Finding finding{"memory limit",
                  m.memory_limit > 0
                      ? human_bytes(static_cast<double>(m.memory_limit)) + " for this job (cgroup)"
                      : "none (cgroup)",
                  ""};
  if (m.memory_limit > 0 && m.memory_limit < m.memory)
    finding.advice =
        "the job is killed above this, without a message: set memory.device_limit below limit / ranks, or "
        "ask for more (sbatch --mem)";
  return finding;
}

}  // namespace

std::vector<Finding> examine(const Machine& m) {
  std::vector<Finding> findings;
  findings.push_back({"host", or_unknown(m.host), ""});
  findings.push_back(
      {"processor", fmt::format("{}, {} processors", or_unknown(m.processor), m.processors), ""});
  findings.push_back(judge_affinity(m));
  findings.push_back({"instructions", m.instruction_sets,
                      m.instruction_sets.find("avx2") == std::string::npos
                          ? "without avx2 everything runs, several times slower: choose newer nodes"
                          : ""});
  findings.push_back(judge_memory(m));
  findings.push_back(judge_limit(m));
  findings.push_back({"disk", size_or_unknown(m.disk_free) + " free in this directory",
                      static_cast<double>(m.disk_free) < 5 * gib
                          ? "a checkpoint takes 12 bytes per parameter: make room, or put run.dir elsewhere"
                          : ""});
  const double needed = 64.0 * 1024 * 1024 * std::max(1, m.local_ranks);
  findings.push_back({"shared memory", size_or_unknown(m.shared_memory_free) + " free in /dev/shm",
                      static_cast<double>(m.shared_memory_free) < needed
                          ? "ranks of one machine exchange messages through it: enlarge it (docker "
                            "--shm-size=1g, mount -o remount,size=1g /dev/shm)"
                          : ""});
  findings.push_back({"messages", or_unknown(m.messages), ""});
  findings.push_back({"graphics", or_unknown(m.graphics),
                      m.gpus > 0 && m.local_ranks > m.gpus
                          ? fmt::format("{} ranks share {} GPU{}: start one rank for each", m.local_ranks,
                                        m.gpus, m.gpus == 1 ? "" : "s")
                          : ""});
  findings.push_back(
      {"its libraries", or_unknown(m.graphics_libraries),
       m.gpus > 0 && m.graphics_libraries.find("not found") != std::string::npos
           ? "load the module of CUDA, or add the folder of what is not found to LD_LIBRARY_PATH"
           : ""});
  findings.push_back({"huge pages", or_unknown(m.huge_pages),
                      m.huge_pages == "never" ? "large matrices miss the page cache less with them: echo "
                                                "madvise > /sys/kernel/mm/transparent_hugepage/enabled"
                                              : ""});
  findings.push_back({"locked memory",
                      m.locked_limit < 0 ? "no limit" : human_bytes(static_cast<double>(m.locked_limit)),
                      m.locked_limit >= 0 && static_cast<double>(m.locked_limit) < 0.0625 * gib
                          ? "InfiniBand needs more: ulimit -l unlimited (in /etc/security/limits.conf, or "
                            "Slurm's PropagateResourceLimitsExcept=MEMLOCK)"
                          : ""});
  std::string spread;
  for (const std::string& variable : m.omp)
    if (variable.starts_with("OMP_PROC_BIND=") && !variable.ends_with("=false") && m.local_ranks > 1 &&
        m.allowed == m.processors)
      spread =
          "every rank would bind its threads to the same processors: unset OMP_PROC_BIND, or let the "
          "launcher bind ranks";
  findings.push_back({"OpenMP", m.omp.empty() ? "no OMP_ variables" : join(m.omp, " "), spread});
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
