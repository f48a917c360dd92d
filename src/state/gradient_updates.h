#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/reduction.h"
#include "config/sections/optimizer.h"
#include "config/sections/train.h"
#include "state/residency.h"
#include "state/shard_squares.h"

namespace mindpipe {

/// Gradients of this rank's units from accumulators to updates: the sums over T-ths of the sequence, data
/// shards, replicas and uses, each in one fixed order; masters and moments, whole or this rank's
/// share (ZeRO).
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

  /// Zeroes what the backwards of a use add to.
  void clear(const UnitUse& use);
  /// Whether the squares of gradients of data shards are taken in the step that begins, where they are at
  /// all.
  void measure(bool measures);
  /// Lets the next gradient that is added up here have this number in one element: a fault to try.
  void spoil_next(float number) { spoils_ = number; }
  /// Adds the gradient of a use to the binary counter once it holds all micro-batches of this rank's data
  /// shard `shard` (counted here): of its parameters those that `made` names.
  void fold(const UnitUse& use, int shard, MadeGradients made = MadeGradients::all);

  /// Begins one part of the sum of a use's gradient over the data axis: to all ranks, or under ZeRO to the
  /// rank that owns each piece. `moves_out`: to this rank's place apart, since the accumulators go to others.
  Reductions::Request reduce(Reductions& over_data, const UnitUse& use, int part, int parts, bool moves_out);
  /// Begins one part of bringing a unit's new values from the ranks that own them.
  Reductions::Request gather(Reductions& over_data, int unit, int part, int parts);
  /// Brings together all values that are in shares, for who reads them between two steps. Collective over the
  /// data axis, and nothing where all are whole.
  void settle(Reductions& over_data);
  /// Bytes that this rank sends in one part of a reduce or gather.
  std::int64_t sent_by_reduce(const UnitUse& use, int part, int parts) const;
  std::int64_t sent_by_gather(int unit, int part, int parts) const;
  /// One part of a use's gradient, summed over data: what homes of the unit on other stages exchange.
  Tensor exchanged_part(const UnitUse& use, int part, int parts) const;

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

  /// Room for a positions' table of the unit on all local T-ths of the sequence, all but one zeros; 0 where
  /// the sequence is whole.
  std::size_t zeros_bytes(const Unit& unit) const;
  void reserve(std::size_t zeros_bytes) { zeros_.reserve(stage_.context().backend.memory(), zeros_bytes); }

 private:
  /// Each data rank's piece of part `part` of `parts` of a unit's flat elements. Pieces are cut at edges of
  /// chunks, and a rank's pieces of all parts are its share under ZeRO.
  std::vector<Tensor> pieces_of(int unit, const Tensor& flat, int part, int parts) const;
  Tensor accumulator_of(const UnitUse& use) const { return stage_.unit(use.unit).root(stage_.use_of(use)); }
  void decide_scopes(const DecisionScopes& scopes, std::int64_t most_tensors);
  void decide_steps();
  StepRule rule(std::int64_t valid) const;
  void add_uses();
  bool spoil(const Unit& unit, int use, int param);
  bool splits_sequence() const { return stage_.context().sequence_parallel && groups_.tensor.size() > 1; }
  void combine_sequence(Unit& unit, int use);
  void count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements);

  Stage& stage_;
  Residency& residency_;
  TrainConfig train_;
  OptimizerConfig optimizer_;
  DeviceKind device_;
  Groups groups_;
  Communicator alone_;  ///< the tree over T-ths of the sequence when all of them are here
  SumTree over_data_;
  std::optional<LossSums> losses_;
  std::optional<Decisions> decisions_;
  std::optional<ShardSquares> squares_;
  bool measures_ = false;
  std::optional<float> spoils_;  ///< number to put into the next gradient
  const Tensor* measured_ = nullptr;
  WorkArea zeros_;
};

}  // namespace mindpipe
