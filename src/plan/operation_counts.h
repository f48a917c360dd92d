#pragma once
#include <string>
#include <utility>
#include <vector>

namespace mindpipe {

struct Config;

/// Operations of one of what the model's speed is counted in, forward and backward of the whole model; what
/// several tensor ranks compute alike counts once.
double operations_of(const Config& config);

/// The share of each block's operations that no tensor rank is spared, from 0 to 1, by the block's name, and
/// that of the model's.
struct UndividedShares {
  std::vector<std::pair<std::string, double>> of_blocks;
  double of_model = 0;
};
UndividedShares undivided_shares(const Config& config);

}  // namespace mindpipe
