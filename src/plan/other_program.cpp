#include "plan/other_program.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "config/config.h"
#include "config/open_settings.h"
#include "core/refusal.h"
#include "core/text.h"
#include "plan/memory_limits.h"
#include "trace/trace_parts.h"

namespace mindpipe {
namespace {

/// Settings that change the program and not the model.
constexpr std::string_view layout_settings[] = {
    "grid.pipeline",     "grid.data",    "grid.tensor",     "schedule.",
    "train.micro_batch", "train.zero",   "train.recompute", "train.sequence_parallel",
    "train.swap",        "device.links."};

/// What the actions of a planned step take by themselves on all ranks: transfers as long as they take where
/// they meet others at ports.
ReplayTimes times_of_plan(const RunPlan& plan, const ReplayGraph& graph, const TracePrices& prices) {
  const PlannedStep& step = plan.training;
  const Durations alone = durations_of(step.program, plan.outline, plan.network);
  ReplayTimes times{.sums_of = std::vector<int>(graph.actions() + 1, 0), .rows = {}, .violations = {}};
  ReplayRow& row = times.rows.emplace_back();
  row.eager.resize(graph.actions());
  const bool same_ranks = graph.ranks() == std::ssize(prices.ranks);
  for (int action = 0; action < graph.actions(); ++action) {
    const int stage = graph.stage_of(action), index = graph.index_of(action);
    const Span& span = step.expected.spans[stage][index];
    const Action& what = graph.at(action);
    const bool waits_inside = is_communication(what) || what.sums > 0;
    const double slower = same_ranks && is_work(what) ? prices.ranks[graph.rank_of(action)] : 1;
    const std::int64_t takes = waits_inside ? span.end - span.start : alone[stage][index];
    row.lasts.push_back(std::llround(static_cast<double>(takes) * slower));
    row.lag.push_back(prices.lags[lag_class(graph, action)]);
  }
  return times;
}

/// The period of a configuration's steps at these prices.
std::int64_t priced_period(const Config& config, const TracePrices& prices) {
  const RunPlan plan = make_run_plan(config, Purpose::training, {}, 1, with_trace_prices(prices));
  require_within(plan, config);
  const ReplayGraph graph(degrees_of(config.grid), plan.training.program);
  return replayed_period(graph, times_of_plan(plan, graph, prices), chained_steps);
}

/// Changes of a layout that keep its grid.
std::vector<std::vector<std::string>> changes_of(const Config& traced) {
  std::vector<std::vector<std::string>> changes;
  const ScheduleConfig& now = traced.schedule;
  for (const ScheduleKind kind : all_kinds<ScheduleKind>()) {
    const ScheduleRow& row = row_of(kind);
    if (row.of_subnets || row.has_groups || traced.grid.pipeline == 1) continue;
    for (const int chunks : {1, 2, 4})
      if ((chunks > 1) == row.has_chunks && (kind != now.kind || chunks != now.chunks))
        changes.push_back({fmt::format("schedule.kind={}", kind), fmt::format("schedule.chunks={}", chunks),
                           "schedule.cuts=[]"});
  }
  if (!now.cuts.empty()) changes.push_back({"schedule.cuts=[]"});
  for (const int zero : {0, 1, 2})
    if (traced.grid.data > 1 && zero != traced.train.zero)
      changes.push_back({fmt::format("train.zero={}", zero)});
  if (traced.train.recompute != WhichBlocks::none)
    changes.push_back({fmt::format("train.recompute={}", WhichBlocks::none)});
  if (traced.train.swap.any()) changes.push_back({fmt::format("train.swap={}", WhichBlocks::none)});
  return changes;
}

/// What a price rests on beside what was measured.
std::string note_on(const Config& traced, const Config& other) {
  std::string note;
  if (num_ranks(degrees_of(other.grid)) != num_ranks(degrees_of(traced.grid)))
    note += "; another number of ranks, so what single ranks are slower by is left out";
  const Coord before = degrees_of(traced.grid), after = degrees_of(other.grid);
  if (std::any_of(axes.begin(), axes.end(), [&](Axis axis) { return before[axis] == 1 && after[axis] > 1; }))
    note += "; it has traffic of a kind that the trace has none of, which is priced on paper";
  if (other.train.micro_batch != traced.train.micro_batch || other.grid.tensor != traced.grid.tensor ||
      other.train.recompute != traced.train.recompute ||
      other.train.sequence_parallel != traced.train.sequence_parallel)
    note += "; its blocks do other work, priced by what they were measured at beside their prices on paper";
  return note;
}

/// The work that the blocks of a layout do, by number.
std::set<std::uint64_t> works_of(const Config& config) {
  CostModel costs(config, make_layout(config, {}));
  std::set<std::uint64_t> works;
  const int blocks = static_cast<int>(costs.model().blocks().size());
  for (int block = 0; block < blocks; ++block) works.insert(costs.work_of(block));
  return works;
}

/// Refuses a grid of which nothing was measured: neither the work of any block nor traffic over any axis.
void require_covered(const Config& traced, const Config& other, const std::string& change,
                     const std::string& name) {
  const Coord before = degrees_of(traced.grid), after = degrees_of(other.grid);
  if (before == after) return;
  std::vector<std::string> exchanged;
  for (const Axis axis : axes) {
    if (after[axis] == 1) continue;
    if (before[axis] > 1) return;
    exchanged.emplace_back(name_of(axis));
  }
  const std::set<std::uint64_t> measured = works_of(traced), wanted = works_of(other);
  if (std::any_of(wanted.begin(), wanted.end(), [&](std::uint64_t work) { return measured.contains(work); }))
    return;
  fail(Exit::bad_data,
       "{}: what if {}: the trace says nothing of that grid: its blocks do other work than those that ran{} "
       "(run it, or trace a run whose device.profile has prices of this machine)",
       name, change,
       exchanged.empty() ? "" : ", and nothing that ran exchanged over " + join(exchanged, ", "));
}

}  // namespace

Config with_what_if(const Config& traced, const std::vector<std::string>& settings,
                    std::span<const std::string_view> keys, const std::string& name) {
  for (const std::string& setting : settings)
    MP_REQUIRE(
        std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return setting.starts_with(key); }),
        Exit::usage,
        "{}: what if {}: that makes another training of it, which the trace has no prices for (there are {})",
        name, setting, join(std::vector<std::string>(keys.begin(), keys.end()), ", "));
  Config config = traced;
  config.reproducible.data_follows = config.reproducible.data == config.grid.data;
  config.reproducible.tensor_follows = config.reproducible.tensor == config.grid.tensor;
  Config other = with_settings(config, settings);
  const Coord degrees = degrees_of(other.grid);
  for (const Axis axis : axes)
    MP_REQUIRE(degrees[axis] >= 1, Exit::usage,
               "{}: what if grid.{}=auto: a trace does not say on how many ranks (say a number)", name,
               name_of(axis));
  return other;
}

WhatIfResult priced_beside(const Expected& expected, double itself, double changed, std::string change) {
  const double off = itself / static_cast<double>(expected.period) - 1;
  const auto scaled = [&](std::int64_t period) {
    return std::llround(static_cast<double>(period) * changed / itself);
  };
  const std::int64_t unsure = std::llround(std::abs(off) * static_cast<double>(scaled(expected.period)));
  return {.change = std::move(change),
          .expected = {scaled(expected.period), scaled(expected.least) - unsure,
                       scaled(expected.most) + unsure, expected.draws},
          .note = fmt::format("the traced program, priced so, is {} off", signed_percent(off))};
}

OtherPrograms::OtherPrograms(const StepTrace& trace, const ReplayGraph& graph, const Expected& expected,
                             const std::string& name)
    : traced_(config_of_yaml(trace.configuration, name)),
      expected_(expected),
      name_(name),
      is_priced_(trace.is_priced),
      prices_(fit_trace_prices(trace, graph, measured_times(trace, graph, trace.clock_bound), traced_)),
      itself_(static_cast<double>(priced_period(traced_, prices_))) {}

WhatIfResult OtherPrograms::expect(const std::vector<std::string>& settings) const {
  const Config other = with_what_if(traced_, settings, layout_settings, name_);
  if (!is_priced_) require_covered(traced_, other, join(settings, " "), name_);
  WhatIfResult result = priced_beside(expected_, itself_, static_cast<double>(priced_period(other, prices_)),
                                      join(settings, " "));
  result.note += note_on(traced_, other);
  return result;
}

std::vector<WhatIfResult> OtherPrograms::suggestions() const {
  constexpr double worth_trying = 0.01;
  const auto now = static_cast<double>(expected_.period);
  const double surely = std::max(worth_trying, std::abs(itself_ / now - 1));
  std::vector<WhatIfResult> better;
  for (const std::vector<std::string>& settings : changes_of(traced_)) {
    refusal_of([&] {
      WhatIfResult result = expect(settings);
      if (static_cast<double>(result.expected.period) < (1 - surely) * now)
        better.push_back(std::move(result));
    });
  }
  std::stable_sort(better.begin(), better.end(), [](const WhatIfResult& a, const WhatIfResult& b) {
    return a.expected.period < b.expected.period;
  });
  return better;
}

std::vector<WhatIfResult> suggestions_for(const StepTrace& trace, const ReplayGraph& graph,
                                          const Expected& expected, const std::string& name) {
  constexpr std::size_t most_suggestions = 3;
  constexpr int most_ranks = 64;  // a plan of more takes seconds
  if (graph.ranks() > most_ranks) return {};
  std::vector<WhatIfResult> all;
  refusal_of([&] {  // a file that the configuration names may have gone
    all = OtherPrograms(trace, graph, expected, name).suggestions();
    all.resize(std::min(all.size(), most_suggestions));
  });
  return all;
}

}  // namespace mindpipe
