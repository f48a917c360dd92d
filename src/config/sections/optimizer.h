#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

struct RateConfig {
  RateKind kind = RateKind::cosine;
  double peak = 3e-4, floor = 0;  ///< floor: the rate that the curve falls to
  int warmup = 0;
  int decay = 0;  ///< wsd: steps of the last part; others: where the floor is reached (0: train.steps)
  std::vector<int> drops;    ///< steps: where the rate falls
  double drop_factor = 0.2;  ///< steps: to this share of what it was
  bool operator==(const RateConfig&) const = default;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  RateConfig rate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  /// The names of what the rule keeps of each element.
  std::span<const std::string_view> moments() const {
    const OptimizerRow& row = row_of(kind);
    const bool none = row.only_with_momentum && momentum == 0;
    return std::span(row.moments).first(none ? 0 : row.count);
  }
  bool operator==(const OptimizerConfig&) const = default;
};

}  // namespace mindpipe
