#include "layers/unit.h"

#include <algorithm>
#include <utility>

namespace mindpipe {
namespace {

constexpr std::int64_t align_elements = alignment / sizeof(float);
std::int64_t align_count(std::int64_t n) {
  return (n + align_elements - 1) / align_elements * align_elements;
}

}  // namespace

std::int64_t ParamSpec::rows() const {
  std::int64_t n = 0;
  for (const Piece& piece : pieces) n += piece.rows;
  return n;
}

std::int64_t ParamSpec::count() const {
  std::int64_t n = 0;
  for (const Piece& piece : pieces) n += (piece.rows - piece.padding) * width();
  return n;
}

Tensor Param::value(int shard) const { return unit->value(index, shard); }
Tensor Param::gradient(int shard) const { return unit->gradient(index, use, shard); }
bool Param::takes_first_product(int shard) const { return unit->takes_first_product(index, use, shard); }

Param Unit::add(const ParamSpec& spec, int use) {
  for (int i = 0; i < static_cast<int>(params_.size()); ++i)
    if (params_[i].pieces[0].name == spec.pieces[0].name) {
      params_[i].of_products |= spec.of_products;
      return {this, i, use};
    }
  params_.push_back(spec);
  return {this, static_cast<int>(params_.size()) - 1, use};
}

std::string Unit::tensor_name(int param) const { return name_ + "." + params_[param].pieces[0].name; }

Shape Unit::shard_shape(int param) const {
  const ParamSpec& spec = params_[param];
  const std::int64_t n = shards_.logical;
  const std::int64_t rows = spec.split == Split::out ? spec.rows() / n : spec.rows();
  if (spec.columns == 0) return {rows};
  return {rows, spec.split == Split::in ? spec.columns / n : spec.columns};
}

std::int64_t Unit::shard_stride(int param) const { return align_count(shard_shape(param).count()); }

std::int64_t Unit::parts_stride(int param) const {
  return align_count(shard_shape(param).count() * parts_of(param));
}

std::int64_t Unit::parameters() const {
  std::int64_t n = 0;
  for (const ParamSpec& spec : params_) n += spec.is_learned() ? spec.count() : 0;
  return n;
}

void Unit::lay_out(ShardRange shards, int sequence_parts, int levels, DType dtype) {
  shards_ = shards;
  sequence_parts_ = sequence_parts;
  levels_ = levels;
  dtype_ = dtype;
  offsets_.clear();
  part_offsets_.clear();
  accumulators_.clear();
  levels_memory_.clear();
  flat_count_ = parts_count_ = 0;
  uses_ = 1;
  for (int i = 0; i < static_cast<int>(params_.size()); ++i) {
    const ParamSpec& spec = params_[i];
    for (const Piece& piece : spec.pieces)
      MP_REQUIRE(spec.split != Split::out || piece.rows % shards.logical == 0, Exit::bad_configuration,
                 "{}: {} has {} rows, which {} logical tensor shards do not divide", name_, piece.name,
                 piece.rows, shards.logical);
    MP_REQUIRE(spec.split != Split::in || spec.columns % shards.logical == 0, Exit::bad_configuration,
               "{}: {} has {} columns, which {} logical tensor shards do not divide", name_,
               spec.pieces[0].name, spec.columns, shards.logical);
    MP_CHECK(spec.uses == 1 || params_.size() == 1, "unit {}: a parameter with {} uses is alone in its unit",
             name_, spec.uses);
    uses_ = spec.uses;
    offsets_.push_back(flat_count_);
    part_offsets_.push_back(parts_count_);
    flat_count_ += local_shards(i) * shard_stride(i);
    if (has_sequence_parts(i)) parts_count_ += parts_stride(i);
  }
  expected_.assign(uses_ * params_.size() * static_cast<std::size_t>(shards_.local), 0);
}

std::size_t Unit::accumulator_bytes() const {
  return aligned((flat_count_ * (1 + levels_) + parts_count_) * bytes_of(gradient_dtype()));
}

void Unit::allocate_values(Memory& memory) {
  value_arena_ = Arena(memory, MemoryClass::values, value_bytes());
  place_values(value_arena_.take({flat_count_}, dtype_));
}

void Unit::allocate_gradients(Memory& memory) {
  gradient_arena_ = Arena(memory, MemoryClass::gradients, gradient_bytes());
  for (int use = 0; use < uses_; ++use)
    place_gradients(use,
                    gradient_arena_.take({static_cast<std::int64_t>(accumulator_bytes())}, DType::u8).data);
}

void Unit::leave() {
  gradient_arena_ = Arena();
  accumulators_.clear();
  levels_memory_.clear();
  values_ = {};
}

void Unit::place_gradients(int use, void* memory) {
  accumulators_.resize(uses_);
  levels_memory_.resize(uses_);
  accumulators_[use] = {memory, {flat_count_ + parts_count_}, gradient_dtype()};
  levels_memory_[use] = {
      static_cast<std::byte*>(memory) + accumulators_[use].bytes(), {levels_, flat_count_}, gradient_dtype()};
}

Tensor Unit::value(int param, int shard) const {
  MP_CHECK(values_ && shard < local_shards(param), "unit {}: value {} of shard {}", name_, param, shard);
  return {values_.as<std::byte>() + flat_offset(param, shard) * bytes_of(dtype_), shard_shape(param), dtype_};
}

Tensor Unit::root(int use) const { return accumulators_[use].range(0, flat_count_); }

Tensor Unit::level(int i, int use) const { return levels_memory_[use].at(i); }

Tensor Unit::sequence_parts(int param, int use) const {
  const std::int64_t elements = shard_shape(param).count();
  return accumulators_[use]
      .range(flat_count_ + part_offsets_[param], parts_of(param) * elements)
      .reshaped({parts_of(param), elements});
}

Tensor Unit::gradient(int param, int use, int shard) const {
  const bool by_shards = params_[param].form == Form::shards;
  MP_CHECK(has_gradients(use) && shard < (by_shards ? shards_.local : local_shards(param)),
           "unit {}: gradient {} of shard {}", name_, param, shard);
  const Shape shape = shard_shape(param);
  if (has_sequence_parts(param)) {
    const Tensor parts = sequence_parts(param, use);
    return by_shards ? parts.at(shard).reshaped({1, shape.count()}) : parts;
  }
  const Tensor root_of_shard = root(use).range(flat_offset(param, by_shards ? 0 : shard), shape.count());
  return root_of_shard.reshaped(params_[param].form == Form::rows || by_shards ? Shape{1, shape.count()}
                                                                               : shape);
}

bool Unit::is_of_products(int param, int use) const {
  return (params_[param].of_products >> use & 1) != 0 && shard_stride(param) == shard_shape(param).count();
}

std::int64_t Unit::elements_of_products(int use) const {
  std::int64_t elements = 0;
  for (int p = 0; p < static_cast<int>(params_.size()); ++p)
    if (is_of_products(p, use)) elements += local_shards(p) * shard_shape(p).count();
  return elements;
}

void Unit::expect_products(int param, int use) {
  for (int shard = 0; shard < local_shards(param); ++shard) expected_.at(place_of(param, use, shard)) = 1;
}

bool Unit::takes_first_product(int param, int use, int shard) {
  return std::exchange(expected_.at(place_of(param, use, shard)), 0) != 0;
}

}  // namespace mindpipe
