#include "state/optimizer_shares.h"

namespace mindpipe {

OptimizerShares::OptimizerShares(Stage& stage, const OptimizerConfig& optimizer, const Communicator& data,
                                 bool is_sharded)
    : stage_(stage),
      optimizer_(optimizer),
      is_sharded_(is_sharded),
      share_(is_sharded ? data.rank() : 0),
      shares_(is_sharded ? data.size() : 1) {
  for (const int unit : stage.local_units()) add(unit);
}

UnitOptimizer& OptimizerShares::add(int unit) {
  all_[unit] = std::make_unique<UnitOptimizer>(stage_.unit(unit), optimizer_, share_, shares_);
  return of(unit);
}

}  // namespace mindpipe
