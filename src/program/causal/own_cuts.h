#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// Cuts of subnets' own: each as even as may be where every block runs on its home stage, which is where the
/// run's cut has it, or on a neighbour. What all subnets share stays at home, and a stage has a block at
/// least.
class OwnCuts {
 public:
  explicit OwnCuts(const Outline& outline);

  /// The first block of each stage, and the end. Where the outline has one cut for all: that.
  const std::vector<int>& of(const std::vector<std::uint8_t>& choice);
  /// The blocks [first, last) that a stage may ever run.
  std::pair<int, int> reach(int stage) const;

 private:
  /// Where a stage may begin.
  struct Range {
    int least = 0, most = 0;
  };
  void narrow(int stage);
  double cost(int stage, int first, int last) const {
    return static_cast<double>(outline_.lasting(stage, sums_[last] - sums_[first]));
  }
  template <class Total>
  void solve(const Total& total);

  const Outline& outline_;
  std::vector<Range> ranges_;              ///< each stage's range, and the end
  std::vector<std::int64_t> sums_;         ///< sums of the costs of all blocks before
  std::vector<std::vector<double>> best_;  ///< [stage][where it begins]: of all stages before
  std::vector<std::vector<int>> from_;     ///< where the stage before begins
  std::vector<int> first_block_;
};

}  // namespace mindpipe
