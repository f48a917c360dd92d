#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// One thing that was looked at, and what to do about it; nothing to do when `advice` is empty.
struct Finding {
  std::string name, value, advice;
};

/// What a machine offers a job; 0 or empty where it could not be found out.
struct Machine {
  std::string host, processor, instruction_sets, messages, huge_pages, graphics, graphics_libraries;
  std::string attention_plans;      ///< without a GPU: for which ones attention could be planned here
  int processors = 0, allowed = 0;  ///< in the machine; that this process may use
  int gpus = 0;                     ///< GPUs that this process and this build can use
  std::int64_t memory = 0, memory_free = 0, memory_limit = 0, disk_free = 0, shared_memory_free = 0;
  std::int64_t locked_limit = 0;  ///< ulimit -l in bytes; -1: no limit
  std::string omp_threads;        ///< OMP_NUM_THREADS
  std::vector<std::string> omp;   ///< all OMP_ and GOMP_ variables, NAME=value
  int local_ranks = 1;            ///< ranks of this job on this machine, as the launcher says
};

Machine look_at_this_machine();
/// The name of this machine's processor.
std::string processor_here();
/// Judges a machine; a pure function, so that machines that are not at hand can be judged too.
std::vector<Finding> examine(const Machine& machine);
std::string report(const std::vector<Finding>& findings);

}  // namespace mindpipe
