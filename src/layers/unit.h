#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/memory.h"
#include "core/tensor.h"
#include "layers/unit_gradients.h"

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

/// A count of elements, padded so that what follows is aligned.
std::int64_t aligned_elements(std::int64_t count);

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
/// ranges.
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

  const std::string& name() const { return name_; }
  const std::vector<ParamSpec>& params() const { return params_; }
  const ShardRange& shards() const { return shards_; }
  DType dtype() const { return dtype_; }
  int local_shards(int param) const { return params_[param].split == Split::none ? 1 : shards_.local; }
  Shape shard_shape(int param) const;
  std::int64_t parameters() const;  ///< learned parameters of the whole unit, on all ranks

  Tensor value(int param, int shard) const;

  UnitGradients& gradients() { return gradients_; }
  const UnitGradients& gradients() const { return gradients_; }

  /// Flat elements of this rank, shards aligned, one use each: what is updated and what values travel as.
  std::int64_t flat_count() const { return flat_count_; }
  std::int64_t flat_offset(int param, int shard) const {
    return offsets_[param] + shard * shard_stride(param);
  }
  /// Elements from one shard of a parameter to the next in the flat order.
  std::int64_t shard_stride(int param) const;
  Tensor flat_values() const { return values_; }
  /// How many places use this unit, each with an accumulator; where there are several it has one parameter.
  int uses() const { return uses_; }

 private:
  std::string name_;
  std::vector<ParamSpec> params_;
  ShardRange shards_;
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> offsets_;
  std::int64_t flat_count_ = 0;
  int uses_ = 1;
  Arena value_arena_;
  Tensor values_;
  UnitGradients gradients_{*this};
};

/// The name of one of a unit's tensors, "layers.0.mlp.mlp.up.weight".
std::string tensor_name(const Unit& unit, int param);
std::size_t value_bytes(const Unit& unit);

}  // namespace mindpipe
