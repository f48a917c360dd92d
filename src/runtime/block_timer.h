#pragma once
#include <functional>
#include <memory>

#include "comm/mpi.h"
#include "config/profile.h"
#include "plan/cost_model.h"

namespace mindpipe {

/// Times passes over single blocks of a model on this rank's device. Nothing is exchanged: the tensor group
/// exists on paper, so one rank times its part of any layout.
class BlockTimer {
 public:
  /// `config`: resolved, one stage and one data rank, threads known. `counted`: the same on paper.
  BlockTimer(const Config& config, const World& world, CostModel& counted);

  /// Median times of a block. `goes_on` is asked before each pass: the number of passes so far, and how far
  /// their times scatter. It may be collective.
  MeasuredPass time(int block, const std::function<bool(int passes, double spread)>& goes_on);

  /// Bytes a second of updates, and of zeroing, over arrays that no cache holds.
  double update_rate();
  double clear_rate();

 private:
  void allocate(int block);
  double seconds_of(const std::function<void()>& call);

  Layout layout_;
  CostModel& counted_;
  Memory memory_;
  std::unique_ptr<Backend> backend_;
  Communicator tensor_;
  BlockPasses passes_;
  Tape::WeightGradients weight_gradients_;
};

}  // namespace mindpipe
