#pragma once
#include <optional>

#include "state/shard_squares.h"

namespace mindpipe {

/// Gradients of this rank's units from accumulators of uses to sums of data shards: the sums over T-ths of
/// the sequence, and the binary counter over the rank's shards, in one fixed order.
class GradientFolds {
 public:
  GradientFolds(Stage& stage, Communicator& tensor);

  /// Zeroes what the backwards of a use add to; where passes over memory are long, without what its products
  /// write.
  void clear(const UnitUse& use);
  /// Lets the squares of gradients of data shards be taken from now on; null: they are not.
  void measure(ShardSquares* squares) { squares_ = squares; }
  /// Lets the next gradient that is added up here have this number in one element: a fault to try.
  void spoil_next(float number) { spoils_ = number; }
  /// Adds the gradient of a use to the binary counter once it holds all micro-batches of this rank's data
  /// shard `shard` (counted here): of its parameters those that `made` names.
  void fold(const UnitUse& use, int shard, MadeGradients made = MadeGradients::all);

  /// Room for a positions' table of the unit on all local T-ths of the sequence, all but one zeros; 0 where
  /// the sequence is whole.
  std::size_t zeros_bytes(const Unit& unit) const;
  void reserve(std::size_t zeros_bytes) { zeros_.reserve(stage_.context().backend.memory(), zeros_bytes); }

 private:
  bool spoil(const Unit& unit, int use, int param);
  bool splits_sequence() const { return stage_.context().sequence_parallel && tensor_.size() > 1; }
  void combine_sequence(Unit& unit, int use);
  /// Whether these elements of a root have moved to a level.
  bool count_shard(Unit& unit, int use, int shard, std::int64_t first, std::int64_t elements);
  /// Zeroes these parameters of a root, which is added to next, or lets their products write it; and the
  /// accumulators that lie behind the root, up to `end`.
  template <class IsMade>
  void zero(Unit& unit, int use, std::int64_t end, const IsMade& is_made);

  Stage& stage_;
  Communicator& tensor_;
  Communicator alone_;  ///< the tree over T-ths of the sequence when all of them are here
  SumTree over_data_;
  ShardSquares* squares_ = nullptr;
  std::optional<float> spoils_;  ///< number to put into the next gradient
  WorkArea zeros_;
};

}  // namespace mindpipe
