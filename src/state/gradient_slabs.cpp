#include "state/gradient_slabs.h"

namespace mindpipe {

void GradientSlabs::add_slab(std::size_t bytes) {
  slabs_.push_back({Arena(stage_.context().backend.memory(), MemoryClass::gradients, bytes)});
}

void GradientSlabs::place(const UnitUse& use, Slab& slab) {
  Unit& unit = stage_.unit(use.unit);
  void* there = slab.arena.take({static_cast<std::int64_t>(unit.gradients().bytes_of_use())}, DType::u8).data;
  unit.gradients().place(stage_.use_of(use), there);
  slab.places.emplace_back(use, there);
}

void GradientSlabs::allocate(const RankMemory& placed) {
  slabs_.clear();
  for (const std::int64_t bytes : placed.slabs) add_slab(static_cast<std::size_t>(bytes));
  for (const auto& [use, at] : placed.gradients) {
    slabs_[at.slab].arena.release(0);
    place(use, slabs_[at.slab]);
  }
  if (!placed.slabs.empty()) return;
  for (const int unit : stage_.local_units())
    if (!stage_.unit(unit).gradients().are_here(0))
      stage_.unit(unit).gradients().allocate(stage_.context().backend.memory());
}

void GradientSlabs::allocate(int slabs, std::size_t bytes) {
  for (const int unit : stage_.local_units())
    if (stage_.model().is_shared(unit))
      stage_.unit(unit).gradients().allocate(stage_.context().backend.memory());
  for (int slab = 0; slab < slabs; ++slab) add_slab(bytes);
}

void GradientSlabs::bind(std::span<const UnitUse> uses, int number) {
  Slab& slab = slabs_[number];
  slab.arena.release(0);
  slab.places.clear();
  for (const UnitUse& use : uses) place(use, slab);
}

GradientSlabs::Bound GradientSlabs::bound(const UnitUse& use, int number) {
  for (const auto& [bound, there] : slabs_[number].places)
    if (bound == use) return {stage_.unit(use.unit), stage_.use_of(use), there};
  fail(Exit::internal, "the gradient of unit {} in block {} is not in slab {}", use.unit, use.block, number);
}

std::vector<char> shares_apart(const Model& model, int unit, const RankMemory& placed) {
  std::vector<char> apart(model.units()[unit]->uses(), 0);
  if (placed.slabs.empty()) return apart;
  for (int block : model.blocks_of(unit)) {
    const auto place = placed.gradients.find({unit, block});
    apart[apart.size() > 1 ? model.blocks()[block].use : 0] =
        place == placed.gradients.end() || place->second.moves_out;
  }
  return apart;
}

}  // namespace mindpipe
