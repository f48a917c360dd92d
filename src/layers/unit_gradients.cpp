#include "layers/unit_gradients.h"

#include <utility>

#include "layers/unit.h"

namespace mindpipe {

void UnitGradients::lay_out(int sequence_parts, int levels) {
  sequence_parts_ = sequence_parts;
  levels_ = levels;
  part_offsets_.clear();
  accumulators_.clear();
  levels_memory_.clear();
  parts_count_ = 0;
  const std::size_t params = unit_.params().size();
  for (int param = 0; param < static_cast<int>(params); ++param) {
    part_offsets_.push_back(parts_count_);
    if (has_sequence_parts(param))
      parts_count_ += aligned_elements(unit_.shard_shape(param).count() * parts_of(param));
  }
  expected_.assign(unit_.uses() * params * static_cast<std::size_t>(unit_.shards().local), 0);
}

void UnitGradients::allocate(Memory& memory) {
  arena_ = Arena(memory, MemoryClass::gradients, bytes());
  for (int use = 0; use < unit_.uses(); ++use)
    place(use, arena_.take({static_cast<std::int64_t>(bytes_of_use())}, DType::u8).data);
}

void UnitGradients::place(int use, void* memory) {
  accumulators_.resize(unit_.uses());
  levels_memory_.resize(unit_.uses());
  accumulators_[use] = {memory, {unit_.flat_count() + parts_count_}, dtype()};
  levels_memory_[use] = {
      static_cast<std::byte*>(memory) + accumulators_[use].bytes(), {levels_, unit_.flat_count()}, dtype()};
}

void UnitGradients::leave() {
  arena_ = Arena();
  accumulators_.clear();
  levels_memory_.clear();
}

DType UnitGradients::dtype() const { return unit_.dtype() == DType::f64 ? DType::f64 : DType::f32; }

bool UnitGradients::are_here(int use) const {
  return unit_.flat_count() > 0 && use < static_cast<int>(accumulators_.size()) && accumulators_[use];
}

Tensor UnitGradients::of(int param, int use, int shard) const {
  const Form form = unit_.params()[param].form;
  const bool by_shards = form == Form::shards;
  MP_CHECK(are_here(use) && shard < (by_shards ? unit_.shards().local : unit_.local_shards(param)),
           "unit {}: gradient {} of shard {}", unit_.name(), param, shard);
  const Shape shape = unit_.shard_shape(param);
  if (has_sequence_parts(param)) {
    const Tensor parts = sequence_parts(param, use);
    return by_shards ? parts.at(shard).reshaped({1, shape.count()}) : parts;
  }
  const Tensor root_of_shard =
      root(use).range(unit_.flat_offset(param, by_shards ? 0 : shard), shape.count());
  return root_of_shard.reshaped(form == Form::rows || by_shards ? Shape{1, shape.count()} : shape);
}

Tensor UnitGradients::root(int use) const { return accumulators_[use].range(0, unit_.flat_count()); }

Tensor UnitGradients::level(int i, int use) const { return levels_memory_[use].at(i); }

Tensor UnitGradients::sequence_parts(int param, int use) const {
  const std::int64_t elements = unit_.shard_shape(param).count();
  return accumulators_[use]
      .range(unit_.flat_count() + part_offsets_[param], parts_of(param) * elements)
      .reshaped({parts_of(param), elements});
}

void UnitGradients::expect_products(int param, int use) {
  for (int shard = 0; shard < unit_.local_shards(param); ++shard)
    expected_.at(place_of(param, use, shard)) = 1;
}

bool UnitGradients::takes_first_product(int param, int use, int shard) {
  return std::exchange(expected_.at(place_of(param, use, shard)), 0) != 0;
}

std::size_t UnitGradients::bytes_of_use() const {
  return aligned((unit_.flat_count() * (1 + levels_) + parts_count_) * bytes_of(dtype()));
}

std::size_t UnitGradients::bytes() const { return unit_.uses() * bytes_of_use(); }

int UnitGradients::parts_of(int param) const {
  const Form form = unit_.params()[param].form;
  return form == Form::rows ? sequence_parts_ : form == Form::shards ? unit_.shards().local : 1;
}

std::size_t UnitGradients::place_of(int param, int use, int shard) const {
  return (static_cast<std::size_t>(use) * unit_.params().size() + static_cast<std::size_t>(param)) *
             static_cast<std::size_t>(unit_.shards().local) +
         static_cast<std::size_t>(shard);
}

bool is_of_products(const Unit& unit, int param, int use) {
  return (unit.params()[param].of_products >> use & 1) != 0 &&
         unit.shard_stride(param) == unit.shard_shape(param).count();
}

std::int64_t elements_of_products(const Unit& unit, int use) {
  std::int64_t elements = 0;
  for (int p = 0; p < static_cast<int>(unit.params().size()); ++p)
    if (is_of_products(unit, p, use)) elements += unit.local_shards(p) * unit.shard_shape(p).count();
  return elements;
}

}  // namespace mindpipe
