#pragma once
#include <functional>
#include <memory>

#include "comm/mpi.h"
#include "config/profile.h"
#include "plan/cost_model.h"

namespace mindpipe {

/// Times passes over single blocks of a model on this rank's device, each with the caches as a step would
/// leave them: between a block's passes others have worked on their own memory. Nothing is exchanged: the
/// tensor group exists on paper, so one rank times its part of any layout.
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
  void fill_by_lot(void* there, std::size_t bytes, double most);
  std::int64_t touched(int first, int last);
  int middle_of_alike(int block);
  void work_elsewhere(std::int64_t bytes);
  double seconds_of(const std::function<void()>& call);

  Layout layout_;
  CostModel& counted_;
  Memory memory_;
  std::unique_ptr<Backend> backend_;
  Communicator tensor_;
  BlockPasses passes_;
  Arena others_;  ///< memory in place of the other blocks'
  Tape::WeightGradients weight_gradients_;
};

}  // namespace mindpipe
