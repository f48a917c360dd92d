#include "plan/priced_blocks.h"

#include <algorithm>

#include "config/config.h"
#include "core/check.h"
#include "optim/unit_share.h"
#include "plan/lay_out.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"
#include "plan/step_bound.h"
#include "program/make_program.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

/// What the host of each stage has left for segments beside masters and moments; empty: no limit.
std::vector<std::int64_t> host_limits(const Config& config, const Outline& outline) {
  std::vector<std::int64_t> room;
  for (int stage = 0; stage < outline.stages && config.memory.host_limit > 0; ++stage) {
    room.push_back(config.memory.host_limit);
    for (const int unit : outline.units_of_rank(stage))
      if (outline.state_on_host) room.back() -= share_of_state(outline, unit);
  }
  return room;
}

}  // namespace

PricedBlocks::Key PricedBlocks::key_of(const Config& config, WhichBlocks recompute) {
  return {config.grid.tensor, config.train.sequence_parallel, recompute,
          row_of(config.schedule.kind).splits_backward, config.train.micro_batch};
}

PricedBlocks::Priced& PricedBlocks::priced_model(const Config& config, WhichBlocks recompute) {
  const Key key = key_of(config, recompute);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  Config alike = config;
  alike.train.recompute = recompute;
  alike.train.swap = WhichBlocks::none;
  auto costs = std::make_unique<CostModel>(alike, make_layout(alike, {}));
  Outline outline = costs->outline();
  return known_.emplace(key, Priced{std::move(costs), std::move(outline), {}}).first->second;
}

Outline& PricedBlocks::priced(const Config& config, WhichBlocks recompute) {
  Priced& model = priced_model(config, recompute);
  const std::vector<std::int64_t>& shares = shares_of(model, config.grid.data);
  for (std::size_t unit = 0; unit < shares.size(); ++unit) model.outline.units[unit].share = shares[unit];
  return model.outline;
}

const Outline& PricedBlocks::laid_out_roughly(const Config& config) {
  if (!cuts_know_tapes(config)) return laid_out(config);
  const ChosenBlocks& recomputed = config.train.recompute;
  Outline& outline = priced(config, recomputed.are_some() ? WhichBlocks::none : recomputed.kind);
  lay_out_roughly(outline, config);
  return outline;
}

void PricedBlocks::lay_out_as_before(Outline& outline, const Config& config) {
  lay_out_roughly(outline, config);
  if (!cuts_know_tapes(config)) return;
  const ChosenBlocks &recomputed = config.train.recompute, &swapped = config.train.swap;
  std::vector<int>& cuts = cuts_of_v_[{key_of(config, recomputed.kind), config.grid.pipeline,
                                       config.grid.data, config.schedule.kind, recomputed, swapped}];
  if (cuts.empty()) {
    lay_out(outline, config);
    cuts = outline.first_block;
  }
  outline.first_block = cuts;
}

const Outline& PricedBlocks::laid_out(const Config& config) {
  const ChosenBlocks &recomputed = config.train.recompute, &swapped = config.train.swap;
  if (!recomputed.are_some() && !swapped.any()) {
    Outline& outline = priced(config, recomputed.kind);
    lay_out_as_before(outline, config);
    return outline;
  }
  const Outline& again = priced(config, WhichBlocks::block);
  mixed_ = priced(config, WhichBlocks::none);
  const auto require_blocks = [&](const char* key, const ChosenBlocks& chosen) {
    for (const int block : chosen.numbers)
      MP_REQUIRE(block < mixed_.all_blocks(), Exit::bad_configuration,
                 "{} names block {}, and the model has {}", key, block, mixed_.all_blocks());
  };
  require_blocks("train.recompute", recomputed);
  require_blocks("train.swap", swapped);
  const std::vector<char> can_change = changeable(config);
  for (int block = 0; block < mixed_.all_blocks(); ++block) {
    mixed_.swapped[block] = swapped.has(block) && can_change[block] != 0 ? 1 : 0;
    if (recomputed.has(block) && !is_swapped(mixed_, block)) mixed_.blocks[block] = again.blocks[block];
  }
  lay_out_as_before(mixed_, config);
  return mixed_;
}

std::vector<char> PricedBlocks::changeable(const Config& config) {
  std::vector<char> can;
  for (const Model::Block& block : priced_model(config, WhichBlocks::none).costs->model().blocks())
    can.push_back(block.layer->can_be_recomputed() ? 1 : 0);
  return can;
}

std::vector<int> PricedBlocks::in_flight(const Config& config) {
  const Outline& outline = laid_out(config);
  const auto count = [&] {
    const ScheduleConfig& schedule = config.schedule;
    return most_in_flight(order_of_step(outline, schedule.kind, network_on_paper(config), schedule.groups),
                          outline.all_chunks());
  };
  if (config.train.recompute.any() || config.train.swap.any() || !config.schedule.groups.empty())
    return count();
  std::vector<int>& known = in_flight_[{key_of(config, WhichBlocks::none), config.grid.pipeline,
                                        config.grid.data, config.schedule.kind, outline.first_block}];
  if (known.empty()) known = count();
  return known;
}

std::vector<CutOfTapes> PricedBlocks::cuts_fitting(const Config& config, TapeRules rules, int percent) {
  const std::int64_t limit = config.memory.device_limit;
  if (limit == 0 || !config.schedule.cuts.empty() || config.schedule.chunks > 1) return {};
  rules.given = {config.train.recompute, config.train.swap};
  Config without = config;
  without.train.recompute = without.train.swap = WhichBlocks::none;
  const std::vector<int> held = in_flight(without);
  const Outline& kept = laid_out(without);
  rules.host_limits = host_limits(config, kept);
  return cuts_of_tapes(kept, priced(config, WhichBlocks::block), held, rules, limit * percent / 100);
}

std::optional<TapeChoice> PricedBlocks::fitting(const Config& config, const std::vector<std::int64_t>& over,
                                                TapeRules rules) {
  Config cut = config;
  const Outline& now = laid_out(config);  // a choice moves the cuts, where these are balanced
  cut.schedule.cuts.assign(now.first_block.begin() + 1, now.first_block.end() - 1);
  rules.given = {config.train.recompute, config.train.swap};
  cut.train.recompute = cut.train.swap = WhichBlocks::none;
  const std::vector<int> held = in_flight(cut);
  const Outline& kept = laid_out(cut);
  std::vector<std::int64_t> room = bytes_of_tapes(kept, held, rules.given);
  const std::vector<std::int64_t> beside = bytes_beside_tapes(kept);
  for (std::size_t stage = 0; stage < room.size(); ++stage)
    room[stage] = over.empty() ? std::min(room[stage], config.memory.device_limit - beside[stage])
                               : room[stage] - over[stage];
  rules.host_limits = host_limits(config, kept);
  return choose_tapes(kept, priced(config, WhichBlocks::block), held, room, rules);
}

void PricedBlocks::plan_whole(const Config& config, LayoutCandidate& candidate, const StepPrice& price,
                              double most) {
  const MicroBatchGroups& given = config.schedule.groups;
  for (const auto& [groups, known] : planned_) {
    if (known.layout != candidate.layout || groups != given) continue;
    LayoutCandidate made = known;
    made.bound = candidate.bound;
    made.least_memory = candidate.least_memory;
    made.least_work = candidate.least_work;
    made.actions = candidate.actions;
    made.choices = candidate.choices;
    made.hidden = candidate.hidden;
    candidate = std::move(made);
    return;
  }
  if (is_too_large_unshared(config, candidate)) return;
  simulate_layout(config, candidate, price, most);
  if (candidate.fate != LayoutCandidate::Fate::slower) planned_.emplace_back(given, candidate);
}

bool PricedBlocks::is_too_large_unshared(const Config& config, LayoutCandidate& candidate) {
  const bool is_limited = config.memory.device_limit > 0;
  if (!is_limited || candidate.layout.zero < 2 || row_of(candidate.layout.schedule).has_groups) return false;
  LayoutChoice unshared = candidate.layout;
  unshared.zero = 1;
  const auto found = std::find_if(planned_.begin(), planned_.end(), [&](const auto& planned) {
    return planned.first == config.schedule.groups && planned.second.layout == unshared;
  });
  if (found == planned_.end() || found->second.memory <= config.memory.device_limit) return false;
  const Config known = with_layout(config, candidate.layout);
  const Outline& outline = laid_out(known);
  if (!has_all_gradients_at_once(outline, make_order(known.schedule.kind, request_of(outline)))) return false;
  const LayoutCandidate& large = found->second;
  candidate.fate = LayoutCandidate::Fate::too_large;
  candidate.least_memory = std::max(candidate.least_memory, large.memory);
  candidate.over = large.over;
  return true;
}

const std::vector<std::int64_t>& PricedBlocks::shares_of(Priced& priced, int data) {
  const auto [found, is_new] = priced.shares.try_emplace(data);
  for (const auto& unit : priced.costs->model().units()) {
    if (!is_new) break;
    const auto edges = share_edges(*unit, data);
    std::int64_t most = 0;
    for (int share = 0; share < data; ++share) most = std::max(most, 4 * (edges[share + 1] - edges[share]));
    found->second.push_back(most);
  }
  return found->second;
}

}  // namespace mindpipe
