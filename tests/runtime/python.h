#pragma once
#include <cstdlib>
#include <string>
#include <vector>

namespace mindpipe {

/// Runs a command of the shell, its output thrown away unless it is wanted; true if it exits 0.
inline bool runs(const std::string& command, bool quiet = true) {
  return std::system((command + (quiet ? " > /dev/null 2>&1" : "")).c_str()) ==
         0;  // NOLINT: a test's own words
}

/// An interpreter that imports these modules ("torch, numpy"); empty when there is none.
inline std::string python_with(const std::string& modules, std::vector<std::string> candidates) {
  if (const char* own = std::getenv("MINDPIPE_PYTHON")) candidates.insert(candidates.begin(), own);
  for (const std::string& candidate : candidates)
    if (runs("'" + candidate + "' -c 'import " + modules + "'")) return candidate;
  return {};
}

/// One that imports what `make test-peers` installs; empty when there is none.
inline std::string peer_python_with(const std::string& modules) {
  std::vector<std::string> candidates{MINDPIPE_SOURCE_DIR "/.venv-peers/bin/python", "/usr/bin/python3",
                                      "python3"};
  if (const char* own = std::getenv("MINDPIPE_PEER_PYTHON")) candidates.insert(candidates.begin(), own);
  return python_with(modules, candidates);
}

}  // namespace mindpipe
