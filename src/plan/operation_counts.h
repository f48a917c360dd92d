#pragma once
#include <string>
#include <utility>
#include <vector>

namespace mindpipe {

struct Config;

/// Operations of one of what the model's speed is counted in, forward and backward of the whole model; what
/// several tensor ranks compute alike counts once.
double operations_of(const Config& config);

/// Seconds of a micro-batch's forward and backward on a rank that has all blocks, by what they are spent in.
struct TimeByKind {
  double products = 0, attention = 0, memory = 0, launches = 0;  ///< memory: all else, which is bound by it
  double all() const { return products + attention + memory + launches; }
};
TimeByKind time_by_kind(const Config& config);

/// The share of each block's operations that no tensor rank is spared, from 0 to 1, by the block's name, and
/// that of the model's.
struct UndividedShares {
  std::vector<std::pair<std::string, double>> of_blocks;
  double of_model = 0;
};
UndividedShares undivided_shares(const Config& config);

}  // namespace mindpipe
