#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// How much memory there is, and what says so.
struct MemoryLimit {
  std::int64_t bytes = 0;  ///< 0: it could not be found out, or there is no limit
  std::string name;
};

/// The files that may limit the memory of a process with this /proc/self/cgroup, from its own group to the
/// root, of either version.
std::vector<std::string> limit_files(const std::string& groups);
/// What such a file says, in bytes; 0: no limit ("max", or the first version's enormous number).
std::int64_t limit_in(const std::string& text);

/// The tightest limit on the way from this process's cgroup to the root; 0: none.
std::int64_t cgroup_limit();
/// Memory and swap of this machine, or what this job's cgroup leaves of it.
MemoryLimit memory_here();

}  // namespace mindpipe
