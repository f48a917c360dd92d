#pragma once
#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace mindpipe {

class Unit;

/// What the backwards of a unit's uses add to. The accumulators of a use are its root, which is summed over
/// data and read by the update, in the unit's flat order, and behind it the accumulators for T-ths of the
/// sequence; levels, the partial sums of data shards, lie apart.
class UnitGradients {
 public:
  explicit UnitGradients(const Unit& unit) : unit_(unit) {}

  /// Lays them out for a unit that is laid out. `sequence_parts`: how many T-ths of the sequence have `rows`
  /// accumulators here; `levels`: partial sums of data shards kept beside the accumulator (SumTree::levels).
  void lay_out(int sequence_parts, int levels);
  /// Accumulators of all uses, in memory of their own.
  void allocate(Memory& memory);
  /// Lets one use's accumulators lie at `memory` (bytes_of_use() of it), which others may use in turn.
  void place(int use, void* memory);
  /// Gives accumulators back, of a unit that lives elsewhere from now on.
  void leave();

  /// f32, or f64 in gradient checks.
  DType dtype() const;
  bool are_here(int use) const;
  /// What a use's backward adds to for a parameter's shard. `rows`: [parts, elements], a row for each local
  /// T-th.
  Tensor of(int param, int use, int shard) const;
  /// The accumulator of one use, in flat order: what is summed over the data axis.
  Tensor root(int use) const;
  /// A partial sum of earlier data shards, like a root.
  Tensor level(int i, int use) const;
  int levels() const { return levels_; }
  /// The per-T-th accumulators of a `rows` parameter's use [parts, elements].
  Tensor sequence_parts(int param, int use) const;
  bool has_sequence_parts(int param) const { return parts_of(param) > 1; }
  /// What the backwards of one use add to, levels excluded: zeroed before the first of them.
  Tensor accumulators(int use) const { return accumulators_[use]; }

  /// Lets the next product for each shard of a weight write this use's gradient, whatever is there.
  void expect_products(int param, int use);
  /// Whether that product is this one, which is asked once.
  bool takes_first_product(int param, int use, int shard);

  /// The accumulators and levels of one use.
  std::size_t bytes_of_use() const;
  std::size_t bytes() const;

 private:
  /// Accumulators of a parameter that are added up to its root.
  int parts_of(int param) const;
  std::size_t place_of(int param, int use, int shard) const;

  const Unit& unit_;
  int sequence_parts_ = 1, levels_ = 0;
  std::vector<std::int64_t> part_offsets_;
  std::int64_t parts_count_ = 0;  ///< elements of one use
  Arena arena_;
  std::vector<Tensor> accumulators_, levels_memory_;  ///< memory of each use
  std::vector<char> expected_;  ///< by use, parameter and shard: the next product writes
};

/// Whether products alone write a use's gradient of a parameter, every element of it and no other.
bool is_of_products(const Unit& unit, int param, int use);
std::int64_t elements_of_products(const Unit& unit, int use);

}  // namespace mindpipe
