#pragma once
#include <fstream>
#include <set>
#include <string>

namespace mindpipe {

/// The lines of a file of tests/golden.
inline std::set<std::string> golden_lines(const std::string& file) {
  std::set<std::string> lines;
  std::ifstream in(MINDPIPE_SOURCE_DIR "/tests/golden/" + file);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

}  // namespace mindpipe
