#include "core/machine_memory.h"

#include <sys/sysinfo.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace mindpipe {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<std::string> limit_files(const std::string& groups) {
  std::vector<std::string> files;
  std::istringstream lines(groups);
  for (std::string line;
       std::getline(lines, line);) {  // number:controllers:path; the second version names no controllers
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool old = controllers.find(",memory,") != std::string::npos;
    if (controllers != ",," && !old) continue;
    const std::string root = old ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup",
                      file = old ? "memory.limit_in_bytes" : "memory.max";
    for (std::filesystem::path group = line.substr(second + 1); group.has_relative_path();
         group = group.parent_path())
      files.push_back(root + group.string() + "/" + file);
    files.push_back(root + "/" + file);  // within a container, its own group's
  }
  return files;
}

std::int64_t limit_in(const std::string& text) {
  const std::int64_t limit = std::atoll(text.c_str());  // "max" reads as 0
  return limit > 0 && limit < (std::int64_t{1} << 60) ? limit : 0;
}

std::int64_t cgroup_limit() {
  std::int64_t least = 0;
  for (const std::string& file : limit_files(contents_of("/proc/self/cgroup")))
    if (const std::int64_t limit = limit_in(contents_of(file)); limit > 0 && (least == 0 || limit < least))
      least = limit;
  return least;
}

MemoryLimit memory_here() {
  struct sysinfo info {};
  const std::int64_t machine =
      sysinfo(&info) == 0 ? static_cast<std::int64_t>(info.totalram + info.totalswap) * info.mem_unit : 0;
  const std::int64_t group = cgroup_limit();
  if (group > 0 && (machine == 0 || group < machine))
    return {group, "the limit of this job on this machine (cgroup)"};
  return {machine, "all memory of this machine"};
}

}  // namespace mindpipe
