#pragma once
#include <map>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "optim/unit_optimizer.h"

namespace mindpipe {

/// What is decided for each unit by itself: whether its gradient is applied, how far it is scaled down, how
/// often that has been. A subnet updates the units that it uses and no others, so no norm reaches beyond a
/// unit. All stays on the device.
class UnitDecisions {
 public:
  using Optimizers = std::map<int, std::unique_ptr<UnitOptimizer>>;
  /// `most_tensors`: of the units of one call.
  UnitDecisions(Backend& backend, Communicator& tensor, const Optimizers& optimizers,
                std::int64_t most_tensors);
  static std::size_t bytes(const Optimizers& optimizers, int local_shards, std::int64_t most_tensors);
  /// Bytes of what arrives in the tensor group's exchange.
  static std::size_t exchange_bytes(const Communicator& tensor, std::int64_t most_tensors);

  /// Decides for units whose gradients are here, summed over data; one exchange for all of them. Collective
  /// over the tensor group.
  void decide(std::span<const int> units, const StepRule& rule);
  /// How often a unit's gradient has been applied. Waits for the device.
  std::int64_t applied(int unit) const;
  void set_applied(int unit, std::int64_t times);
  /// f64 [Decision::places]; zeros before the first.
  const Tensor& of(int unit) const { return units_.at(unit).decision; }

 private:
  struct Rows {
    UnitOptimizer* optimizer = nullptr;
    Tensor spans;    ///< [local shards][tensors]: which chunk sums are a tensor's
    Tensor tensors;  ///< all of the unit: one span
    Tensor decision;
    std::int64_t count = 0;  ///< of tensors
  };
  void add_unit(int unit, UnitOptimizer& optimizer);

  Backend& backend_;
  Communicator& tensor_;
  std::map<int, Rows> units_;
  Arena arena_;
  Tensor chunks_;  ///< of one unit at a time
  Tensor of_shards_, sums_;
  Tensor totals_;  ///< no loss, and the square
};

}  // namespace mindpipe
