#pragma once
#include <string>

namespace mindpipe {

struct GenerateConfig {
  std::string prompt;
  int tokens = 128;
  double temperature = 1;  ///< 0: greedy
  int top_k = 0;
  double top_p = 1;
  bool operator==(const GenerateConfig&) const = default;
};

}  // namespace mindpipe
