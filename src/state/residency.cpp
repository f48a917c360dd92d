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
      state_names_(mindpipe::state_names(train, optimizer)),
      shares_(stage, optimizer, groups.data, train.zero > 0 && groups.data.size() > 1),
      values_(stage),
      gradients_(stage),
      readers_(stage),
      moves_(stage, *this),
      arrivals_(stage, *this),
      whole_(stage, shares_.is_sharded()),
      updated_(stage.model().units().size(), 0) {}

void Residency::await(const std::vector<Action>& list) {
  for (const Action& action : list) {
    if (!is_move(action) || sends(action) || action.part > 0) continue;
    for (const int unit : action.units) {
      values_.hold(unit);
      shares_.add(unit).allocate(stage_.context().backend.memory(), {1});
    }
  }
  moves_.allocate(list);
}

void Residency::take_units(const RankMemory& placed) {
  moves_.allocate({});
  const std::vector<int>& here = stage_.local_units();
  for (int unit = 0; unit < static_cast<int>(stage_.model().units().size()); ++unit) {
    if (!shares_.has(unit) || std::binary_search(here.begin(), here.end(), unit)) continue;
    values_.drop(unit);
    stage_.unit(unit).gradients().leave();
    stage_.unit(unit).place_values({});
    whole_.gathered(unit);
    shares_.drop(unit);
  }
  Memory& memory = stage_.context().backend.memory();
  for (const int unit : here) {
    if (shares_.has(unit)) {
      shares_.of(unit).place_apart(memory, {});
      continue;
    }
    values_.hold(unit);
    shares_.add(unit).allocate(memory);
  }
  gradients_.allocate(placed);
  for (const auto& [unit, share] : shares_.all())
    share->place_apart(memory, shares_apart(stage_.model(), unit, placed));
}

void Residency::ended_step() {
  for (int unit = 0; unit < static_cast<int>(stage_.model().units().size()); ++unit)
    if (std::exchange(updated_[static_cast<std::size_t>(unit)], 0) == 0 && stage_.unit(unit).flat_count() > 0)
      values_.wrote(unit);
}

void Residency::allocate(const ResidencyPlan& plan) {
  arrivals_.come_in_order(plan.in_order);
  own_cuts_ = plan.own_cuts;
  values_.allocate(plan.window, plan.in_order);
  if (plan.keeps == ResidencyPlan::values) return;
  if (plan.keeps == ResidencyPlan::steps) gradients_.allocate(*plan.placed);
  else gradients_.allocate(plan.slabs, plan.slab);
  Memory& memory = stage_.context().backend.memory();
  for (const auto& [unit, share] : shares_.all())
    share->allocate(memory,
                    plan.keeps == ResidencyPlan::steps ? shares_apart(stage_.model(), unit, *plan.placed)
                                                       : std::vector<char>{},
                    plan.host);
  if (plan.host != nullptr) shares_.fetched().allocate(memory, shares_.all());
  moves_.allocate(plan.ways, plan.way);
}

void Residency::updated(int unit) {
  values_.wrote(unit);
  updated_[static_cast<std::size_t>(unit)] = 1;
  whole_.updated(unit);
}

Tensor Residency::newest(int unit, std::string_view state) const {
  if (state == "value") {
    whole_.require(unit);
    return values_.newest(unit);
  }
  if (state == older_state) return values_.older(unit);
  for (const auto& [name, part] : shares_.of(unit).states())
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

}  // namespace mindpipe
