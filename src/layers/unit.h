#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"

namespace mindpipe {

/// How a weight [out, in] is divided over the tensor axis. With one logical shard every value means "whole".
enum class Split : std::uint8_t { none, out, in };

/// How a parameter's gradient comes about over the tensor axis: every rank alike or its own shard
/// (`whole`), one accumulator for each T-th of the sequence (`rows`), or rows that only one T-th ever touches
/// (`positions`: a sum with zeros, so one accumulator does), or one accumulator for each shard, where shards
/// of something else share the parameter (`shards`).
enum class Form : std::uint8_t { whole, rows, positions, shards };

struct Initial {
  enum class Kind : std::uint8_t { zero, one, normal } kind = Kind::zero;
  double deviation = 0;
  std::int64_t zero_row = -1;  ///< row of the whole tensor that begins as zeros
};

/// A named piece of a parameter: q, k and v stacked in one weight are three. Rows from `rows - padding` on
/// are padding: they are never initialised, learned, hashed or saved.
struct Piece {
  std::string name;
  std::int64_t rows = 0, padding = 0;
};

/// What a parameter is, before any memory exists: [rows of all pieces, columns], or [rows] when columns is 0.
struct ParamSpec {
  std::vector<Piece> pieces;
  std::int64_t columns = 0;
  Split split = Split::none;
  Form form = Form::whole;
  Initial initial;
  bool decay = false;
  bool product = false;  ///< gradient is a product that the tape may put off (zero-bubble schedules)
  /// Uses, as bits, whose gradient is written by products alone, or by what is turned of them, every element
  /// of it: nobody needs to zero it.
  std::uint32_t of_products = 0;
  int uses = 1;  ///< places that use it; each has its own accumulator, their roots are added in model order
  /// Above 0: a running statistic. No optimizer moves it: a step takes it this share of the way to the mean
  /// of what the step's micro-batches added to its gradient. It is in no norm, no clip, no decay, no moment.
  double follows = 0;

  /// Nothing moves it: it is as a file has it. It is in no norm, no clip, no decay, no moment either.
  bool constant = false;

  std::int64_t rows() const;
  std::int64_t width() const { return columns == 0 ? 1 : columns; }
  bool is_learned() const { return follows == 0 && !constant; }
  /// Elements without padding: what a user counts.
  std::int64_t count() const;
};

/// Which of the logical shards are here.
struct ShardRange {
  int logical = 1, local = 1, first = 0;
};

class Unit;

/// A name for a parameter, not its address: units are fetched, evicted, moved. Ask at the call, never keep.
struct Param {
  Unit* unit = nullptr;
  int index = 0, use = 0;
  explicit operator bool() const { return unit != nullptr; }
  Tensor value(int shard = 0) const;
  /// What a backward adds to: this use's accumulator. `rows`: [parts, elements], a row for each local T-th.
  Tensor gradient(int shard = 0) const;
  bool takes_first_product(int shard) const;
};

/// Parameters that travel as one. Their elements lie one after the other, each shard aligned; that flat order
/// is the same for values, gradients and optimizer state, so that sums, statistics and updates run over flat
/// ranges. The accumulators of a use are its root, which is summed over data and read by the update, and
/// behind it the accumulators for T-ths of the sequence; levels, the partial sums of data shards, lie apart.
class Unit {
 public:
  explicit Unit(std::string name) : name_(std::move(name)) {}
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  /// Declares a parameter before memory exists, or finds the one of that name (a tied table's second use).
  Param add(const ParamSpec& spec, int use = 0);

  /// Lays the unit out for these shards. `sequence_parts`: how many T-ths of the sequence have `rows`
  /// accumulators here; `levels`: partial sums of data shards kept beside the accumulator (SumTree::levels).
  void lay_out(ShardRange shards, int sequence_parts, int levels, DType dtype);
  /// Values, in memory of their own.
  void allocate_values(Memory& memory);
  /// Lets values lie elsewhere.
  void place_values(const Tensor& values) { values_ = values; }
  /// Accumulators of all uses, in memory of their own.
  void allocate_gradients(Memory& memory);
  /// Gives accumulators back, of a unit that lives elsewhere from now on, and forgets where values were.
  void leave();
  /// Lets one use's accumulators lie at `memory` (accumulator_bytes() of it), which others may use in turn.
  void place_gradients(int use, void* memory);

  const std::string& name() const { return name_; }
  /// The name of one of its tensors, "layers.0.mlp.mlp.up.weight".
  std::string tensor_name(int param) const;
  const std::vector<ParamSpec>& params() const { return params_; }
  const ShardRange& shards() const { return shards_; }
  DType dtype() const { return dtype_; }
  /// The dtype of gradients: f32, or f64 in gradient checks.
  DType gradient_dtype() const { return dtype_ == DType::f64 ? DType::f64 : DType::f32; }
  int local_shards(int param) const { return params_[param].split == Split::none ? 1 : shards_.local; }
  Shape shard_shape(int param) const;
  std::int64_t parameters() const;  ///< learned parameters of the whole unit, on all ranks

  Tensor value(int param, int shard) const;
  Tensor gradient(int param, int use, int shard) const;

  /// Flat elements of this rank, shards aligned, one use each: what is updated and what values travel as.
  std::int64_t flat_count() const { return flat_count_; }
  std::int64_t flat_offset(int param, int shard) const {
    return offsets_[param] + shard * shard_stride(param);
  }
  Tensor flat_values() const { return values_; }
  /// How many places use this unit, each with an accumulator; where there are several it has one parameter.
  int uses() const { return uses_; }
  /// The accumulator of one use, in flat order: what is summed over the data axis.
  Tensor root(int use) const;
  /// A partial sum of earlier data shards, like a root.
  Tensor level(int i, int use) const;
  /// The per-T-th accumulators of a `rows` parameter's use [parts, elements].
  Tensor sequence_parts(int param, int use) const;
  bool has_sequence_parts(int param) const { return parts_of(param) > 1; }
  /// What the backwards of one use add to, levels excluded: zeroed before the first of them.
  Tensor accumulators(int use) const { return accumulators_[use]; }
  /// Whether products alone write this use's gradient of a parameter, every element of it and no other.
  bool is_of_products(int param, int use) const;
  std::int64_t elements_of_products(int use) const;
  /// Lets the next product for each shard of a weight write this use's gradient, whatever is there.
  void expect_products(int param, int use);
  /// Whether that product is this one, which is asked once.
  bool takes_first_product(int param, int use, int shard);
  bool has_gradients(int use) const {
    return flat_count_ > 0 && use < static_cast<int>(accumulators_.size()) && accumulators_[use];
  }
  int levels() const { return levels_; }

  std::size_t value_bytes() const { return aligned(flat_count_ * bytes_of(dtype_)); }
  /// The accumulators and levels of one use.
  std::size_t accumulator_bytes() const;
  std::size_t gradient_bytes() const { return uses_ * accumulator_bytes(); }

 private:
  /// Accumulators of a parameter that are added up to its root.
  int parts_of(int param) const {
    const Form form = params_[param].form;
    return form == Form::rows ? sequence_parts_ : form == Form::shards ? shards_.local : 1;
  }
  std::size_t place_of(int param, int use, int shard) const {
    return (static_cast<std::size_t>(use) * params_.size() + static_cast<std::size_t>(param)) *
               static_cast<std::size_t>(shards_.local) +
           static_cast<std::size_t>(shard);
  }
  std::int64_t shard_stride(int param) const;
  std::int64_t parts_stride(int param) const;

  std::string name_;
  std::vector<ParamSpec> params_;
  ShardRange shards_;
  DType dtype_ = DType::f32;
  int sequence_parts_ = 1, levels_ = 0;
  std::vector<std::int64_t> offsets_, part_offsets_;
  std::int64_t flat_count_ = 0, parts_count_ = 0;  ///< elements of one use
  int uses_ = 1;
  Arena value_arena_, gradient_arena_;
  Tensor values_;
  std::vector<Tensor> accumulators_, levels_memory_;  ///< memory of each use
  std::vector<char> expected_;  ///< by use, parameter and shard: the next product writes
};

}  // namespace mindpipe
