#include "layers/unit.h"

namespace mindpipe {

std::int64_t aligned_elements(std::int64_t count) {
  constexpr std::int64_t together = alignment / sizeof(float);
  return (count + together - 1) / together * together;
}

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
Tensor Param::gradient(int shard) const { return unit->gradients().of(index, use, shard); }
bool Param::takes_first_product(int shard) const {
  return unit->gradients().takes_first_product(index, use, shard);
}

Param Unit::add(const ParamSpec& spec, int use) {
  for (int i = 0; i < static_cast<int>(params_.size()); ++i)
    if (params_[i].pieces[0].name == spec.pieces[0].name) {
      params_[i].of_products |= spec.of_products;
      return {this, i, use};
    }
  params_.push_back(spec);
  return {this, static_cast<int>(params_.size()) - 1, use};
}

Shape Unit::shard_shape(int param) const {
  const ParamSpec& spec = params_[param];
  const std::int64_t n = shards_.logical;
  const std::int64_t rows = spec.split == Split::out ? spec.rows() / n : spec.rows();
  if (spec.columns == 0) return {rows};
  return {rows, spec.split == Split::in ? spec.columns / n : spec.columns};
}

std::int64_t Unit::shard_stride(int param) const { return aligned_elements(shard_shape(param).count()); }

std::int64_t Unit::parameters() const {
  std::int64_t n = 0;
  for (const ParamSpec& spec : params_) n += spec.is_learned() ? spec.count() : 0;
  return n;
}

void Unit::lay_out(ShardRange shards, int sequence_parts, int levels, DType dtype) {
  shards_ = shards;
  dtype_ = dtype;
  offsets_.clear();
  flat_count_ = 0;
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
    flat_count_ += local_shards(i) * shard_stride(i);
  }
  gradients_.lay_out(sequence_parts, levels);
}

void Unit::allocate_values(Memory& memory) {
  value_arena_ = Arena(memory, MemoryClass::values, value_bytes(*this));
  place_values(value_arena_.take({flat_count_}, dtype_));
}

Tensor Unit::value(int param, int shard) const {
  MP_CHECK(values_ && shard < local_shards(param), "unit {}: value {} of shard {}", name_, param, shard);
  return {values_.as<std::byte>() + flat_offset(param, shard) * bytes_of(dtype_), shard_shape(param), dtype_};
}

std::string tensor_name(const Unit& unit, int param) {
  return unit.name() + "." + unit.params()[param].pieces[0].name;
}

std::size_t value_bytes(const Unit& unit) { return aligned(unit.flat_count() * bytes_of(unit.dtype())); }

}  // namespace mindpipe
