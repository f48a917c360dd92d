#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "state/scalar_sums.h"

namespace mindpipe {

/// Gradients of this rank's units from accumulators to updates: the sums over T-ths of the sequence, data
/// shards, replicas and uses, each in the order that bits.md fixes; masters and moments, whole or this rank's
/// part (ZeRO).
class GradientUpdates {
 public:
  GradientUpdates(Stage& stage, const Config& config, Groups groups);
  void allocate(const RankMemory& placed);

  /// Zeroes what the backwards of a block add to.
  void clear(int block);
  /// Which gradients of a block are complete: all, or (a backward in two halves) those made at once or those
  /// that were put off.
  enum class Made : std::uint8_t { all, at_once, later };
  /// The gradients of a block hold all micro-batches of this rank's data shard `shard` (counted here).
  void fold(int block, int shard, Made made = Made::all);
  /// What a block adds to, in flat order: the accumulators of its uses, to be summed over the data axis.
  struct Root {
    int unit, use;
    Tensor gradient;
  };
  std::vector<Root> roots_of(int block);
  /// Each data rank's piece of part `part` of `parts` of a unit's flat elements: gradients of one use, or
  /// values. Pieces are cut at edges of chunks, and a rank's pieces of all parts are its own part under ZeRO.
  std::vector<Tensor> pieces_of(int unit, const Tensor& flat, int part, int parts) const;
  /// The units that update(block) moves: a shared one only at the first of its blocks on this rank.
  std::vector<int> units_updated_by(int block) const;
  /// Where this rank's piece of a root goes when it has been summed over the data axis under ZeRO.
  Tensor own_piece_of(const Root& root, int part, int parts) const;
  /// That of the shared unit's use in `block`: what homes on other stages exchange.
  Tensor shared_part(int block, int part, int parts) const;
  bool sharded() const { return parts_ > 1; }

  /// Once all uses are here and summed over data: use 0 += the others, in model order.
  void add_uses();
  /// Decides the step from its losses [micro_batches, samples, sequence] on the rank that has the head
  /// (others: none) and from the gradients; `valid`: targets of the whole batch that count.
  void decide(const Tensor& losses, std::int64_t valid, double loss_factor, double clip);
  /// Exact sum of what the replicas have; no device takes part.
  std::int64_t sum_over_data(std::int64_t value);
  const Tensor& decision() const { return scalars_->decision(); }
  void update(int block, double rate);

  UnitOptimizer* optimizer_of(int unit) {
    return optimizers_.count(unit) ? optimizers_.at(unit).get() : nullptr;
  }
  std::size_t optimizer_bytes() const;

  /// Room for a positions' table of the unit on all local T-ths of the sequence, all but one zeros; 0 where
  /// the sequence is whole.
  std::size_t zeros_bytes(const Unit& unit) const;
  void reserve(std::size_t zeros_bytes) { zeros_.reserve(stage_.context().backend.memory(), zeros_bytes); }

 private:
  bool sequence_is_cut() const { return stage_.context().sequence_parallel && groups_.tensor.size() > 1; }
  void combine_sequence(Unit& unit, int use);
  void count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements);

  Stage& stage_;
  Config config_;
  Groups groups_;
  Communicator alone_;  ///< the tree over T-ths of the sequence when all of them are here
  int part_, parts_;
  std::map<int, std::unique_ptr<UnitOptimizer>> optimizers_;
  std::optional<ScalarSums> scalars_;
  WorkArea zeros_;
};

}  // namespace mindpipe
