#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// Limit of the memory that a process may use, and where it stands.
struct MemoryLimit {
  std::int64_t bytes = 0;  ///< 0: there is no limit, or none could be found
  std::string name;
};

/// Paths of the files that may limit the memory of a process whose /proc/self/cgroup says `groups`, from its
/// own group to the root, for either version of cgroups.
std::vector<std::string> limit_files(const std::string& groups);
/// Bytes that the text of a cgroup's limit file allows; 0: no limit ("max", or an enormous number).
std::int64_t limit_in(const std::string& text);

/// The tightest limit on the way from this process's cgroup to the root; 0: none.
std::int64_t cgroup_limit();
/// Memory and swap of this machine, or what this job's cgroup leaves of it.
MemoryLimit memory_here();

}  // namespace mindpipe
