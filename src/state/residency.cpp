#include "state/residency.h"

#include <algorithm>

#include "config/sections/train.h"

namespace mindpipe {

std::vector<std::string_view> state_names(const TrainConfig& train, const OptimizerConfig& optimizer) {
  std::vector<std::string_view> states{"value"};
  if (train.precision == Precision::bf16) states.push_back("master");
  const auto moments = optimizer.moments();
  states.insert(states.end(), moments.begin(), moments.end());
  return states;
}

Residency::Residency(Stage& stage, const TrainConfig& train, const OptimizerConfig& optimizer, Groups groups)
    : stage_(stage),
      pipeline_(groups.pipeline),
      optimizer_(optimizer),
      state_names_(mindpipe::state_names(train, optimizer)),
      data_rank_(groups.data.rank()),
      data_ranks_(groups.data.size()),
      is_sharded_(train.zero > 0 && groups.data.size() > 1),
      values_(stage),
      gradients_(stage),
      readers_(stage),
      moves_(stage, *this),
      in_shares_(stage.model().units().size(), 0),
      updated_(stage.model().units().size(), 0) {
  for (const int unit : stage.local_units()) make_share(unit);
}

UnitOptimizer& Residency::make_share(int unit) {
  shares_[unit] = std::make_unique<UnitOptimizer>(stage_.unit(unit), optimizer_, is_sharded_ ? data_rank_ : 0,
                                                  is_sharded_ ? data_ranks_ : 1);
  return *shares_[unit];
}

void Residency::await(const std::vector<Action>& list) {
  for (const Action& action : list) {
    if (!is_move(action) || sends(action) || action.part > 0) continue;
    for (const int unit : action.units) {
      values_.hold(unit);
      make_share(unit).allocate(stage_.context().backend.memory(), {1});
    }
  }
  moves_.allocate(list);
}

void Residency::take_units(const RankMemory& placed) {
  moves_.allocate({});
  const std::vector<int>& here = stage_.local_units();
  for (auto share = shares_.begin(); share != shares_.end();) {
    const int unit = share->first;
    const bool stays = std::binary_search(here.begin(), here.end(), unit);
    if (!stays) {
      values_.drop(unit);
      stage_.unit(unit).gradients().leave();
      stage_.unit(unit).place_values({});
      in_shares_[static_cast<std::size_t>(unit)] = 0;
    }
    share = stays ? std::next(share) : shares_.erase(share);
  }
  Memory& memory = stage_.context().backend.memory();
  for (const int unit : here) {
    if (shares_.contains(unit)) {
      shares_.at(unit)->place_apart(memory, {});
      continue;
    }
    values_.hold(unit);
    make_share(unit).allocate(memory);
  }
  gradients_.allocate(placed);
  for (const auto& [unit, share] : shares_)
    share->place_apart(memory, shares_apart(stage_.model(), unit, placed));
}

void Residency::ended_step() {
  for (int unit = 0; unit < static_cast<int>(stage_.model().units().size()); ++unit)
    if (std::exchange(updated_[static_cast<std::size_t>(unit)], 0) == 0 && stage_.unit(unit).flat_count() > 0)
      values_.wrote(unit);
}

Tensor Residency::own_values(int unit) const {
  const UnitOptimizer& own = share(unit);
  return values_.newest(unit).range(own.begin(), own.end() - own.begin());
}

void Residency::allocate(const ResidencyPlan& plan) {
  in_order_ = plan.in_order;
  own_cuts_ = plan.own_cuts;
  values_.allocate(plan.window, plan.in_order);
  if (plan.keeps == ResidencyPlan::values) return;
  if (plan.keeps == ResidencyPlan::steps) gradients_.allocate(*plan.placed);
  else gradients_.allocate(plan.slabs, plan.slab);
  Memory& memory = stage_.context().backend.memory();
  for (const auto& [unit, share] : shares_)
    share->allocate(memory,
                    plan.keeps == ResidencyPlan::steps ? shares_apart(stage_.model(), unit, *plan.placed)
                                                       : std::vector<char>{},
                    plan.host);
  if (plan.host != nullptr) fetched_.allocate(memory, shares_);
  moves_.allocate(plan.ways, plan.way);
}

void Residency::updated(int unit) {
  values_.wrote(unit);
  updated_[static_cast<std::size_t>(unit)] = 1;
  in_shares_[static_cast<std::size_t>(unit)] = is_sharded_ ? 1 : 0;
}

void Residency::require_whole(int unit) const {
  MP_CHECK(is_whole(unit), "the values of unit {} are read, of which this rank has a share alone",
           stage_.unit(unit).name());
}

Tensor Residency::newest(int unit, std::string_view state) const {
  if (state == "value") {
    require_whole(unit);
    return values_.newest(unit);
  }
  if (state == older_state) return values_.older(unit);
  for (const auto& [name, part] : share(unit).states())
    if (name == state) return part;
  return {};
}

void Residency::begin(Reader first) {
  values_.begin(first);
  std::vector<std::int64_t> users;
  for (int unit = 0; unit < static_cast<int>(stage_.model().units().size()); ++unit)
    users.push_back(stage_.counts_here(unit) ? values_.version(unit) : 0);
  // What may run beside its home was brought home, and is an old version here.
  if (own_cuts_) pipeline_.sum_integers(users);
  readers_.begin(std::move(users));
}

void Residency::require_due(Reader reader, int first, int last) const {
  if (!in_order_ || !readers_.awaits(reader)) return;
  for (const UnitUse& use : readers_.uses(reader, first, last))
    require_due(reader, use.unit, values_.version(use.unit), readers_.due(reader, use.unit));
}

/// Every older user of a unit has updated it, and its state is here; or the plan, or what carried it out, is
/// wrong.
void Residency::require_due(Reader reader, int unit, std::int64_t found, std::int64_t due) const {
  MP_CHECK(found == due || !decisions_->is_of_step(),
           "unit {} comes from another stage with version {}, and has been updated {} times. This is a "
           "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
           stage_.unit(unit).name(), found, due);
  MP_CHECK(
      found == due,
      "subnet {} finds version {} of unit {}, and {} older subnets use it: its order was not kept. This is a "
      "mistake of the program, or of the machine; a restart goes on from the last checkpoint",
      reader, found, stage_.unit(unit).name(), due);
}

void Residency::ended(const Action& move) {
  if (sends(move)) return;
  moves_.arrived(move);
  if (move.part + 1 < move.parts) return;
  const bool is_counted = stage_.context().backend.memory().kind() == Memory::Kind::counted;
  for (const int unit : move.units) {
    const bool of_step = decisions_->is_of_step();
    const std::int64_t due = of_step ? values_.version(unit) : readers_.due(move.owner.number, unit);
    values_.set_version(unit, due);
    if (!is_counted) arrivals_.push_back({move.owner.number, unit, due, moves_.version_of(unit)});
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
