#include "state/residency.h"

#include <algorithm>

namespace mindpipe {

Residency::Residency(Stage& stage, GradientUpdates& updates, Communicator& pipeline,
                     const ResidencyPlan& plan)
    : stage_(stage),
      pipeline_(pipeline),
      in_order_(plan.in_order),
      travels_in_stages_(plan.travels_in_stages),
      moves_(stage, updates, plan.ways, plan.way),
      users_(stage.model().units().size(), 0) {
  take_slabs(plan);
}

/// Accumulators of a step have places once and for all; those of units that all subnets share, and of a step
/// without slabs, are the unit's own.
void Residency::take_slabs(const ResidencyPlan& plan) {
  Memory& memory = stage_.context().backend.memory();
  const bool in_slabs = plan.placed == nullptr || !plan.placed->slabs.empty();
  for (const int unit : stage_.local_units())
    if (!in_slabs || stage_.model().is_shared(unit)) stage_.unit(unit).allocate_gradients(memory);
  for (int slab = 0; slab < plan.slabs; ++slab)
    slabs_.push_back({Arena(memory, MemoryClass::gradients, plan.slab)});
  if (plan.placed == nullptr) return;
  for (const std::int64_t bytes : plan.placed->slabs)
    slabs_.push_back({Arena(memory, MemoryClass::gradients, static_cast<std::size_t>(bytes))});
  for (const auto& [use, at] : plan.placed->gradients) {
    slabs_[at.slab].arena.release(0);
    place(use, slabs_[at.slab]);
  }
}

void Residency::place(const UnitUse& use, Slab& slab) {
  Unit& unit = stage_.unit(use.unit);
  void* there = slab.arena.take({static_cast<std::int64_t>(unit.accumulator_bytes())}, DType::u8).data;
  unit.place_gradients(stage_.use_of(use), there);
  slab.places.emplace_back(use, there);
}

void Residency::begin(Reader first) {
  readers_.clear();
  for (int unit = 0; unit < static_cast<int>(users_.size()); ++unit)
    users_[unit] = stage_.counts_here(unit) ? stage_.unit(unit).version : 0;
  // What may run beside its home was brought home, and is an old version here.
  if (travels_in_stages_) pipeline_.sum_integers(users_);
  MP_CHECK(arrivals_.empty(), "units that came for subnet {} were not looked at before subnet {}",
           arrivals_.front().reader, first);
}

void Residency::know(const Subnet& subnet) {
  const Layout& layout = stage_.layout();
  const std::vector<Model::Block>& blocks = stage_.model().blocks();
  const bool is_here = subnet.id % layout.grid.supernet == layout.coord.supernet;
  for (int block = 0; block < static_cast<int>(blocks.size()); ++block)
    for (const Model::Block::Choice& part : blocks[block].choices) {
      const int unit = part.units[subnet.choice[part.place]];
      if (unit < 0) continue;
      if (is_here) {
        Known& known = readers_[subnet.id];
        known.uses.push_back({unit, block});
        known.due.push_back(users_[unit]);
      }
      ++users_[unit];
    }
}

std::span<const UnitUse> Residency::uses(Reader reader, int first, int last) const {
  const std::vector<UnitUse>& uses = known(reader).uses;
  const auto from = [&](int block) {
    return std::partition_point(uses.begin(), uses.end(),
                                [&](const UnitUse& use) { return use.block < block; });
  };
  return {from(first), from(last)};
}

/// How many older subnets use a unit; behind the last subnet that is known, all that do.
std::int64_t Residency::due_version(Reader reader, int unit) const {
  const auto known = readers_.find(reader);
  if (known == readers_.end()) return users_[unit];
  const auto& [uses, due] = known->second;
  const auto use =
      std::find_if(uses.begin(), uses.end(), [&](const UnitUse& one) { return one.unit == unit; });
  MP_CHECK(use != uses.end(), "unit {} came for subnet {}, which does not use it", unit, reader);
  return due[static_cast<std::size_t>(use - uses.begin())];
}

/// Every older user of a unit has updated it, and its state is here; or the plan, or what carried it out, is
/// wrong.
void Residency::require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const {
  MP_CHECK(
      found == due,
      "subnet {} finds version {} of unit {}, and {} older subnets use it: its order was not kept. This is a "
      "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
      reader, found, stage_.unit(unit).name(), due);
}

void Residency::require_due(Reader reader, int first, int last) const {
  const auto& [uses, due] = known(reader);
  if (!in_order_ || due.empty()) return;
  for (const UnitUse& use : this->uses(reader, first, last))
    require_due(reader, use.unit, stage_.unit(use.unit).version, due[&use - uses.data()]);
}

void Residency::bind(Reader reader, int first, int last, int number) {
  Slab& slab = slabs_[number];
  slab.arena.release(0);
  slab.places.clear();
  for (const UnitUse& use : uses(reader, first, last)) place(use, slab);
}

void Residency::bind(const UnitUse& use, int slab) {
  for (const auto& [bound, there] : slabs_[slab].places)
    if (bound == use) return stage_.unit(use.unit).place_gradients(stage_.use_of(use), there);
  fail(Exit::internal, "the gradient of unit {} in block {} is not in slab {}", use.unit, use.block, slab);
}

void Residency::ended(const Action& move) {
  if (sends(move)) return;
  moves_.arrived(move);
  if (move.part + 1 < move.parts) return;
  const bool is_counted = stage_.context().backend.memory().kind() == Memory::Kind::counted;
  for (const int unit : move.units) {
    const std::int64_t due = due_version(move.subnet, unit);
    stage_.unit(unit).version = due;
    if (!is_counted) arrivals_.push_back({move.subnet, unit, due, moves_.version_of(unit)});
  }
}

std::vector<Residency::Arrival> Residency::take_arrivals(Reader reader) {
  std::vector<Arrival> taken;
  const auto others = std::stable_partition(arrivals_.begin(), arrivals_.end(),
                                            [&](const Arrival& one) { return one.reader != reader; });
  taken.assign(others, arrivals_.end());
  arrivals_.erase(others, arrivals_.end());
  return taken;
}

}  // namespace mindpipe
