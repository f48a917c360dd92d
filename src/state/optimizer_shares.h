#pragma once
#include "state/fetched_states.h"
#include "state/stage.h"

namespace mindpipe {

/// This rank's shares of the masters and moments of units: whole where all data ranks hold them.
class OptimizerShares {
 public:
  /// Knows the shares of all units that may run here; `is_sharded`: each data rank has its own.
  OptimizerShares(Stage& stage, const OptimizerConfig& optimizer, const Communicator& data, bool is_sharded);

  UnitOptimizer& of(int unit) const { return *all_.at(unit); }
  bool has(int unit) const { return all_.contains(unit); }
  const Optimizers& all() const { return all_; }
  /// Whether data ranks hold different masters.
  bool is_sharded() const { return is_sharded_; }

  /// A unit has come, or comes in the step that begins: its share needs memory.
  UnitOptimizer& add(int unit);
  /// A unit has left.
  void drop(int unit) { all_.erase(unit); }
  /// Slots of the device, where masters and moments are kept in the host's memory.
  FetchedStates& fetched() { return fetched_; }

 private:
  Stage& stage_;
  OptimizerConfig optimizer_;
  bool is_sharded_;
  int share_, shares_;
  Optimizers all_;
  FetchedStates fetched_;
};

}  // namespace mindpipe
