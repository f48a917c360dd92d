#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/reduction.h"
#include "state/scalar_sums.h"

namespace mindpipe {

/// Gradients of this rank's units from accumulators to updates: the sums over T-ths of the sequence, data
/// shards, replicas and uses, each in one fixed order; masters and moments, whole or this rank's
/// share (ZeRO).
class GradientUpdates {
 public:
  GradientUpdates(Stage& stage, const Config& config, Groups groups);
  /// Masters, moments, and what the scalars of a step are added up in.
  void allocate(const RankMemory& placed);
  /// Takes what losses are added up in, for who only reads.
  void allocate_for_reading() { scalars_.emplace(stage_, groups_, Optimizers{}, false, false); }

  /// Masters and moments of a supernet, whose units are decided each by itself.
  void allocate_for_subnets();

  /// Zeroes what the backwards of a use add to.
  void clear(const UnitUse& use);
  /// Adds the gradient of a use to the binary counter once it holds all micro-batches of this rank's data
  /// shard `shard` (counted here): of its parameters those that `made` names.
  void fold(const UnitUse& use, int shard, MadeGradients made = MadeGradients::all);

  /// Begins one part of the sum of a use's gradient over the data axis: to all ranks, or under ZeRO to the
  /// rank that owns each piece.
  Reductions::Request reduce(Reductions& over_data, const UnitUse& use, int part, int parts);
  /// Begins one part of bringing a unit's new values from the ranks that own them.
  Reductions::Request gather(Reductions& over_data, int unit, int part, int parts);
  /// Bytes that this rank sends in one part of a reduce or gather.
  std::int64_t sent_by_reduce(const UnitUse& use, int part, int parts) const;
  std::int64_t sent_by_gather(int unit, int part, int parts) const;
  /// One part of a use's gradient, summed over data: what homes of the unit on other stages exchange.
  Tensor exchanged_part(const UnitUse& use, int part, int parts) const;
  bool sharded() const { return shares_ > 1; }

  /// Once the gradients of all uses are here and summed over data: use 0 += the others, in model order.
  void add_uses();
  /// Decides the step from its losses [micro_batches, samples, sequence] on the rank that has the head
  /// (others: none) and from the gradients; `valid`: targets of the whole batch that count.
  void clip_and_scale(const Tensor& losses, std::int64_t valid, double loss_factor);
  /// The scalars of steps and evaluations.
  ScalarSums& scalars() { return *scalars_; }
  /// Exact sum over the data axis; no device takes part.
  std::int64_t sum_over_data(std::int64_t value);
  const Tensor& decision() const { return scalars_->decision(); }
  void update(int unit, double rate);

  const std::map<int, std::unique_ptr<UnitOptimizer>>& optimizers() const { return optimizers_; }
  UnitOptimizer* optimizer_of(int unit) {
    return optimizers_.count(unit) ? optimizers_.at(unit).get() : nullptr;
  }

  /// Room for a positions' table of the unit on all local T-ths of the sequence, all but one zeros; 0 where
  /// the sequence is whole.
  std::size_t zeros_bytes(const Unit& unit) const;
  void reserve(std::size_t zeros_bytes) { zeros_.reserve(stage_.context().backend.memory(), zeros_bytes); }

 private:
  using Optimizers = ScalarSums::Optimizers;
  /// Each data rank's piece of part `part` of `parts` of a unit's flat elements. Pieces are cut at edges of
  /// chunks, and a rank's pieces of all parts are its share under ZeRO.
  std::vector<Tensor> pieces_of(int unit, const Tensor& flat, int part, int parts) const;
  Tensor accumulator_of(const UnitUse& use) const { return stage_.unit(use.unit).root(stage_.use_of(use)); }
  bool sequence_is_cut() const { return stage_.context().sequence_parallel && groups_.tensor.size() > 1; }
  void combine_sequence(Unit& unit, int use);
  void count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements);

  Stage& stage_;
  Config config_;
  Groups groups_;
  Communicator alone_;  ///< the tree over T-ths of the sequence when all of them are here
  SumTree over_data_;
  int share_, shares_;
  Optimizers optimizers_;
  std::optional<ScalarSums> scalars_;
  WorkArea zeros_;
};

}  // namespace mindpipe
