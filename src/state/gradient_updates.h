#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "config/sections/optimizer.h"
#include "config/sections/train.h"
#include "state/gradient_folds.h"
#include "state/gradient_sums.h"

namespace mindpipe {

/// What gradients of this rank's units come to: folded on this rank, summed over data, added up over uses in
/// one fixed order, decided, and applied to masters and moments, whole or this rank's share (ZeRO).
class GradientUpdates {
 public:
  GradientUpdates(Stage& stage, Residency& residency, const TrainConfig& train,
                  const OptimizerConfig& optimizer, DeviceKind device, Groups groups);
  /// Takes what losses are added up in, for who only reads; and what a step is decided by; or each unit of a
  /// supernet, `most_tensors` of the units of one update.
  void allocate_for_reading() { losses_.emplace(stage_, groups_.data); }
  void allocate_for_steps();
  void allocate_for_subnets(std::int64_t most_tensors);

  /// Goes on with the units that are here now, between two steps. Waits for the device.
  void take_units();

  /// Whether the squares of gradients of data shards are taken in the step that begins, where they are at
  /// all.
  void measure(bool measures);
  /// Decides a step once the gradients of all uses are here and summed over data, from them and from its
  /// losses [micro_batches, samples, targets] on the rank that has the head (others: none). `valid`: targets
  /// of this rank's micro-batches that count. Gives back those of the whole batch. Collective over the
  /// groups.
  std::int64_t decide_step(const Tensor& losses, std::int64_t valid);
  /// Decides each unit of these uses by itself. `valid`: targets of the whole batch that count. Collective
  /// over the tensor group.
  void decide(std::span<const UnitUse> uses, std::int64_t valid) { decisions_->decide(uses, rule(valid)); }
  /// Moves a unit's values, as was decided.
  void update(int unit, double rate);
  /// The losses of steps, subnets and evaluations.
  LossSums& losses() { return *losses_; }
  /// What the newest step has measured: f64 [data shards + 1]; none: it was not.
  const Tensor* measured() const { return measures_ ? measured_ : nullptr; }
  Decisions& decisions() { return *decisions_; }
  GradientFolds& folds() { return folds_; }
  GradientSums& sums() { return sums_; }

 private:
  void decide_scopes(const DecisionScopes& scopes, std::int64_t most_tensors);
  void decide_steps();
  StepRule rule(std::int64_t valid) const;
  void add_uses();

  Stage& stage_;
  Residency& residency_;
  TrainConfig train_;
  OptimizerConfig optimizer_;
  DeviceKind device_;
  Groups groups_;
  GradientFolds folds_;
  GradientSums sums_;
  std::optional<LossSums> losses_;
  std::optional<Decisions> decisions_;
  std::optional<ShardSquares> squares_;
  bool measures_ = false;
  const Tensor* measured_ = nullptr;
};

}  // namespace mindpipe
