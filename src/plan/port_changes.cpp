#include "plan/port_changes.h"

#include <algorithm>
#include <iterator>

#include "config/config.h"
#include "core/check.h"
#include "core/refusal.h"
#include "core/text.h"
#include "plan/layout_space.h"
#include "plan/layout_trial.h"
#include "plan/network_on_paper.h"
#include "plan/run_plan.h"
#include "plan/searched_settings.h"
#include "state/layout.h"

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

/// The configuration with what a file has in place of what was chosen.
Config as_written(Config config, const OpenSettings& open) {
  config.schedule.groups = open.groups;
  config.schedule.cuts = open.cuts;
  config.train.recompute = open.recompute;
  config.train.swap = open.swap;
  return config;
}

/// A written order's groups are left to the planner.
Config with_open_groups(Config config) {
  config.schedule.groups = {};
  return config;
}

/// Nothing is open: all is as the file has it.
OpenSettings nothing_open(const Config& config) {
  return {.keys = {},
          .groups = config.schedule.groups,
          .cuts = config.schedule.cuts,
          .recompute = config.train.recompute,
          .swap = config.train.swap};
}

/// Steps of more forwards than this take long to choose tapes for.
constexpr int most_forwards = 256;

}  // namespace

PortChanges::PortChanges(const Config& config) : PortChanges(config, nothing_open(config)) {}

PortChanges::PortChanges(const Config& config, const OpenSettings& open)
    : config_(config),
      open_(open),
      of_subnets_(row_of(config.model.kind).trains_subnets),
      written_(as_written(config, open)),
      free_(with_open_groups(written_)) {}

/// The settings that make the file's configuration the layout. What stays open is not said; what is open and
/// is not chosen anew is, although it stays as it is planned.
std::string PortChanges::words_of_change(const LayoutChoice& then, bool names_tapes) const {
  const LayoutChoice now = layout_of(written_);
  std::vector<std::string> words;
  for (const SearchedSetting& setting : searched_settings()) {
    if (!setting.is_of(config_.model)) continue;
    const std::string value = setting.value(then);
    const bool is_named = open_.keys.contains(setting.key) && (names_tapes || !setting.is_of_tapes());
    if (is_named || value != setting.value(now)) words.push_back(fmt::format("{}={}", setting.key, value));
  }
  if (!open_.groups.forward.empty()) words.emplace_back("schedule.groups.forward=auto");
  if (!open_.groups.backward.empty()) words.emplace_back("schedule.groups.backward=auto");
  if (config_.schedule.memory > 0 && !row_of(then.schedule).splits_backward)
    words.emplace_back("schedule.memory=0");
  return join(words, " ");
}

std::vector<LayoutChoice> PortChanges::layouts_for(TrafficClass holds) const {
  const LayoutChoice now = layout_of(written_);
  std::vector<LayoutChoice> layouts = with_axis_in_node(config_, now, holds);
  if (now.grid.pipeline > 1) {
    const std::vector<LayoutChoice> more = with_other_schedules(now);
    layouts.insert(layouts.end(), more.begin(), more.end());
  }
  if (open_.groups.empty()) std::erase(layouts, now);
  return layouts;
}

bool PortChanges::chooses_tapes_of(const LayoutChoice& asked) const {
  const int forwards = asked.grid.pipeline * make_layout(config_, {}).micro_batches();
  return asked.schedule != ScheduleKind::searched && forwards <= most_forwards;
}

PortChanges::Known PortChanges::with_tapes_chosen(const LayoutChoice& asked) const {
  Known known{asked, asked, {words_of_change(asked, false)}};
  refusal_of([&] {
    const std::optional<Config> chosen = open_.choose_tapes(with_layout(free_, asked));
    if (!chosen) return;
    LayoutCandidate candidate{.layout = layout_of(*chosen)};
    simulate_layout(*chosen, candidate);
    known.chosen = candidate.layout;
    if (candidate.fate == LayoutCandidate::Fate::simulated) known.change.time = candidate.step;
  });
  return known;
}

/// Changes that may be made, the shortest first.
std::vector<PortChanges::Known> PortChanges::shortest_known() const {
  std::vector<Known> known;
  std::copy_if(known_.begin(), known_.end(), std::back_inserter(known),
               [](const Known& one) { return one.change.time > 0; });
  std::stable_sort(known.begin(), known.end(),
                   [](const Known& a, const Known& b) { return a.change.time < b.change.time; });
  return known;
}

/// Whether a layout may fit and be shorter than `best` (0: than any), by what is known without an order.
bool PortChanges::may_be_better(const LayoutChoice& layout, std::int64_t best) {
  bool may_be = false;
  refusal_of([&] {
    const Config known = with_layout(free_, layout);
    const LayoutSketch sketch(known, blocks_.laid_out_roughly(known), true);
    const LayoutCandidate least = sketch.candidate(layout, sketch.first_block(layout));
    const std::int64_t limit = config_.memory.device_limit;
    may_be = (limit == 0 || least.least_memory <= limit) && (best == 0 || least.bound < best);
  });
  return may_be;
}

/// The shortest with the tapes of this plan, or of the shortest changes; one that is known to be longer than
/// another change is not planned.
PortChanges::Known PortChanges::with_tapes_named(const LayoutChoice& asked) {
  constexpr std::size_t most_known = 2;
  std::vector<Known> known = shortest_known();
  std::int64_t best = known.empty() ? 0 : known.front().change.time;
  known.resize(open_.choose_tapes ? std::min(known.size(), most_known) : 0);
  std::vector<LayoutChoice> layouts;
  const auto add = [&](const LayoutChoice& tapes) {
    LayoutChoice layout = asked;
    layout.recompute = tapes.recompute;
    layout.swap = tapes.swap;
    if (std::find(layouts.begin(), layouts.end(), layout) == layouts.end()) layouts.push_back(layout);
  };
  for (const Known& one : known) add(one.chosen);
  const LayoutChoice own = layout_of(open_.choose_tapes ? config_ : written_);
  add(own);
  Known shortest{asked, asked, {}};
  for (const LayoutChoice& layout : layouts) {
    if (!may_be_better(layout, best)) continue;
    LayoutCandidate candidate{.layout = layout};
    // The table of schedules asks for the plan's own tapes, however long that step is.
    const bool is_own = layout.recompute == own.recompute && layout.swap == own.swap;
    blocks_.plan_whole(free_, candidate, {}, is_own ? 0 : static_cast<double>(best));
    if (candidate.fate != LayoutCandidate::Fate::simulated || (best > 0 && candidate.step >= best)) continue;
    best = candidate.step;
    shortest = {asked, layout, {words_of_change(layout, true), candidate.step}};
  }
  return shortest;
}

void PortChanges::simulate(const LayoutChoice& asked) {
  if (std::any_of(known_.begin(), known_.end(), [&](const Known& known) { return known.asked == asked; }))
    return;
  known_.push_back(open_.choose_tapes && chooses_tapes_of(asked) ? with_tapes_chosen(asked)
                                                                 : with_tapes_named(asked));
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
  return {words_of_change(layout_of(other), true), plan.subnets->paper.time / plan.subnets->paper.subnets};
}

const char* PortChanges::alternatives() const {
  return of_subnets_ ? "supernet.cuts" : "schedule, groups or place of the axis";
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
  for (const Known& known : known_) take(known.change);
  return best;
}

}  // namespace mindpipe
