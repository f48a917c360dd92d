#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace mindpipe {

/// What stands in kernels/cuda/README.md between the marks of a table, which name the tests that print it.
inline std::string stated_table(const std::string& name, const std::string& tests) {
  std::ifstream in(MINDPIPE_SOURCE_DIR "/kernels/cuda/README.md");
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str(), begins = "<!-- " + name + ": MINDPIPE_SAY_BYTES=1 " + tests + " -->\n";
  const auto from = text.find(begins);
  if (from == std::string::npos) return "";
  const auto first = from + begins.size();
  return text.substr(first, text.find("<!-- end of " + name + " -->") - first);
}

inline void expect_stated(const std::string& name, const std::string& tests, const std::string& table) {
  if (std::getenv("MINDPIPE_SAY_BYTES") != nullptr) fmt::print("{}\n", table);
  EXPECT_EQ(stated_table(name, tests), table)
      << "MINDPIPE_SAY_BYTES=1 prints what kernels/cuda/README.md should say";
}

}  // namespace mindpipe
