#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "config/profile.h"
#include "config/sections/optimizer.h"
#include "config/sections/train.h"
#include "plan/passes_on_paper.h"

namespace mindpipe {

/// Bytes that an update of one parameter moves: its gradient, and master and moments there and back.
inline constexpr double bytes_of_update = 28;

/// What a model costs on paper, block by block and unit by unit: by what passes take there, or as a profile
/// has measured them.
class CostModel {
 public:
  CostModel(const Config& config, const Layout& layout);

  /// Passes over ranges of blocks, and the memory that they work in.
  PassesOnPaper& passes() { return passes_; }
  /// Costs of every block and unit, and what crosses every cut, for schedules and the simulator.
  Outline outline();
  /// A digest of what a pass over the block asks of its device: equal work has equal digests.
  std::uint64_t work_of(int block);
  /// Forward and backward of a block by the description of a device, seconds.
  double described_seconds(int block);
  /// What device.profile is worth to a plan.
  struct Known {
    double estimated = 0;  ///< share of the time of all blocks whose price it does not have
    double scatter = 0;    ///< how far its prices scatter (MeasuredPass::spread), in the mean of their time
  };
  Known known() const {
    if (all_ == 0) return {};
    return {estimated_ / all_, all_ > estimated_ ? scattered_ / (all_ - estimated_) : 0};
  }
  /// What each block's products, attention and convolutions take this rank, forward and backward of one
  /// micro-batch.
  std::vector<double> operations_of_blocks();
  double operations_of_block(int block);

  Model& model() { return passes_.model(); }
  Stage& stage() { return passes_.stage(); }

 private:
  /// Puts measured times in place of described ones.
  void take_measured(PassOnPaper& pass);
  BlockCost cost_of_block(int block);
  std::vector<BlockCost> costs_of_choice(int block);
  BoundaryBytes crossing(int block);
  std::int64_t nanoseconds(double seconds) const;
  UnitCost cost_of(const Unit& unit) const;

  TrainConfig train_;
  OptimizerConfig optimizer_;
  ScheduleKind schedule_;
  Layout layout_;
  PassesOnPaper passes_;
  std::optional<Profile> profile_;
  double estimated_ = 0, all_ = 0;  ///< seconds
  double scattered_ = 0;            ///< measured seconds, each times its spread
};

}  // namespace mindpipe
