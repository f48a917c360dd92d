#include "plan/port_changes.h"

#include <algorithm>

#include "config/config.h"
#include "core/check.h"
#include "core/text.h"
#include "plan/layout_space.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"

namespace mindpipe {
namespace {

/// The largest divisor of a degree whose groups, of `inner` neighbours each, fit into a node.
int degree_within(int degree, int inner, int ranks_per_node) {
  int most = 1;
  for (int divisor = 1; divisor <= degree; ++divisor)
    if (degree % divisor == 0 && ranks_per_node % (divisor * inner) == 0) most = divisor;
  return most;
}

/// Grids of as many ranks whose groups of an axis fit into a node. What the axis gives up, another one takes.
std::vector<LayoutChoice> with_axis_in_node(const Config& config, const LayoutChoice& now,
                                            TrafficClass holds) {
  const int of_node = links_on_paper(config).ranks_per_node;
  std::vector<LayoutChoice> layouts;
  const auto hand_over = [&](int Coord::*from, int Coord::*to, int kept) {
    LayoutChoice layout = now;
    layout.grid.*to *= layout.grid.*from / kept;
    layout.grid.*from = kept;
    layout.cuts.clear();
    if (kept != now.grid.*from) layouts.push_back(layout);
  };
  const bool may_change_data = !config.reproducible.data_follows,
             may_change_tensor = !config.reproducible.tensor_follows;
  if (holds == TrafficClass::tensor && may_change_tensor) {
    const int kept = degree_within(now.grid.tensor, 1, of_node);
    hand_over(&Coord::tensor, &Coord::pipeline, kept);
    if (may_change_data) hand_over(&Coord::tensor, &Coord::data, kept);
  } else if ((holds == TrafficClass::gradients || holds == TrafficClass::values) && may_change_data) {
    hand_over(&Coord::data, &Coord::pipeline, degree_within(now.grid.data, now.grid.tensor, of_node));
  } else if (holds == TrafficClass::pipeline && may_change_data && now.grid.pipeline % 2 == 0) {
    hand_over(&Coord::pipeline, &Coord::data, now.grid.pipeline / 2);
  }
  return layouts;
}

/// A written order's groups are left to the planner.
Config with_open_groups(Config config) {
  config.schedule.groups = {};
  return config;
}

/// The settings that make a configuration the layout, with groups of the planner's.
std::string words_of_change(const Config& config, const LayoutChoice& then) {
  const LayoutChoice now = layout_of(config);
  std::vector<std::string> words;
  const auto say = [&](const char* key, const auto& before, const auto& after) {
    if (before != after) words.push_back(fmt::format("{}={}", key, after));
  };
  say("grid.pipeline", now.grid.pipeline, then.grid.pipeline);
  say("grid.data", now.grid.data, then.grid.data);
  say("grid.tensor", now.grid.tensor, then.grid.tensor);
  say("schedule.kind", now.schedule, then.schedule);
  say("schedule.chunks", now.chunks, then.chunks);
  if (now.cuts != then.cuts) words.emplace_back("schedule.cuts=[]");
  if (!config.schedule.groups.forward.empty()) words.emplace_back("schedule.groups.forward=auto");
  if (!config.schedule.groups.backward.empty()) words.emplace_back("schedule.groups.backward=auto");
  if (config.schedule.memory > 0 && !row_of(then.schedule).splits_backward)
    words.emplace_back("schedule.memory=0");
  return join(words, " ");
}

}  // namespace

PortChanges::PortChanges(const Config& config)
    : config_(config),
      of_subnets_(row_of(config.model.kind).trains_subnets),
      open_(with_open_groups(config)) {}

std::vector<LayoutChoice> PortChanges::layouts_for(TrafficClass holds) const {
  const LayoutChoice now = layout_of(config_);
  std::vector<LayoutChoice> layouts = with_axis_in_node(config_, now, holds);
  if (now.grid.pipeline > 1) {
    const std::vector<LayoutChoice> more = with_other_schedules(now);
    layouts.insert(layouts.end(), more.begin(), more.end());
  }
  if (config_.schedule.groups.empty()) std::erase(layouts, now);
  return layouts;
}

void PortChanges::simulate(const LayoutChoice& layout) {
  if (std::any_of(known_.begin(), known_.end(), [&](const auto& known) { return known.first == layout; }))
    return;
  LayoutCandidate candidate{.layout = layout};
  simulate_layout(open_, candidate);
  const bool fits = candidate.fate == LayoutCandidate::Fate::simulated;
  known_.push_back({layout, {words_of_change(config_, layout), fits ? candidate.step : 0}});
}

/// A supernet whose units stay where one cut puts them, or go where each subnet's own cut does.
PortChange PortChanges::other_cuts() const {
  Config other = config_;
  other.supernet.cuts = config_.supernet.cuts == SubnetCuts::own ? SubnetCuts::home : SubnetCuts::own;
  const RunPlan plan = make_run_plan(other);
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    if (const std::int64_t limit = config_.memory.device_limit;
        limit > 0 && total_of(plan.most_memory(stage)) > limit)
      return {};
  return {fmt::format("supernet.cuts={}", other.supernet.cuts),
          plan.subnets->paper.time / plan.subnets->paper.subnets};
}

const char* PortChanges::alternatives() const {
  return of_subnets_ ? "cut of the lanes" : "schedule, groups or place of the axis";
}

void PortChanges::simulate_for(TrafficClass holds) {
  if (!of_subnets_)
    for (const LayoutChoice& layout : layouts_for(holds)) simulate(layout);
  else if (!other_cuts_) other_cuts_ = other_cuts();
}

std::optional<PortChange> PortChanges::best(std::int64_t time) const {
  std::optional<PortChange> best;
  const auto take = [&](const PortChange& change) {
    const bool is_shorter = change.time > 0 && change.time + time / 200 <= time;
    if (is_shorter && (!best || change.time < best->time)) best = change;
  };
  if (other_cuts_) take(*other_cuts_);
  for (const auto& [layout, change] : known_) take(change);
  return best;
}

}  // namespace mindpipe
