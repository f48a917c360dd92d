#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "app/run/version.h"
#include "app/verbs/doctor.h"
#include "comm/mpi.h"
#include "core/launcher.h"
#include "core/machine_memory.h"
#include "hardware.h"
#include "plans/workspace_on_paper.h"

namespace mindpipe {
namespace {

/// The value of "name : value" or "name: value" in a file like /proc/meminfo.
std::string value_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) {
      const auto begin = line.find_first_not_of(" \t", line.find(':') + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  return "";
}

std::int64_t kilobytes_in(const std::string& path, const std::string& name) {
  return std::atoll(value_in(path, name).c_str()) * 1024;
}

std::int64_t free_space(const char* path) {
  struct statvfs info {};
  return statvfs(path, &info) == 0
             ? static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize)
             : 0;
}

int allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// "always [madvise] never" -> "madvise"
std::string chosen_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const auto begin = line.find('['), end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? ""
                                                                : line.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string processor_here() { return value_in("/proc/cpuinfo", "model name"); }

Machine look_at_this_machine() {
  Machine m;
  m.host = host_name();
  m.processor = processor_here();
  m.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  m.allowed = allowed_processors();
  m.instruction_sets = instruction_sets();
  m.memory = kilobytes_in("/proc/meminfo", "MemTotal");
  m.memory_free = kilobytes_in("/proc/meminfo", "MemAvailable");
  m.memory_limit = cgroup_limit();
  m.disk_free = free_space(".");
  m.shared_memory_free = free_space("/dev/shm");
  m.messages = mpi_library();
  m.graphics = gpu_devices();
  m.gpus = gpu_count();
  m.graphics_libraries = graphics_found();
  if (m.gpus == 0 && !m.graphics_libraries.empty()) m.attention_plans = gpus_with_attention();
  m.huge_pages = chosen_huge_pages();
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    m.locked_limit = limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(limit.rlim_cur);
  m.omp_threads = environment("OMP_NUM_THREADS");
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view(*variable).starts_with("OMP_") || std::string_view(*variable).starts_with("GOMP_"))
      m.omp.emplace_back(*variable);
  std::sort(m.omp.begin(), m.omp.end());
  for (const char* name : {"SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"})  // the last one counts
    if (const int ranks = std::atoi(environment(name).c_str()); ranks > 0) m.local_ranks = ranks;
  return m;
}

}  // namespace mindpipe
