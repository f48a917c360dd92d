#include "trace/diagnosis.h"

#include <algorithm>
#include <random>

#include "core/check.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr int chained_steps = 4;
constexpr double most_error = 0.005;
constexpr std::size_t most_causes = 3;

std::int64_t expected_period(const ReplayTimes& measured, const ReplayGraph& graph,
                             const std::vector<int>& rows, const WhatIf* change) {
  ReplayTimes expected = expected_times(measured, graph, rows);
  if (change != nullptr) change->apply(expected);
  return replay(graph, expected, chained_steps).period();
}

/// The period by medians over all steps, and over draws of them.
Expected expect(const ReplayTimes& measured, const ReplayGraph& graph, const WhatIf* change) {
  constexpr std::int64_t most_actions = 20'000'000;
  const std::int64_t each = std::int64_t{graph.actions()} * (chained_steps + std::ssize(measured.rows));
  const int draws =
      static_cast<int>(std::clamp<std::int64_t>(most_actions / std::max<std::int64_t>(1, each), 0, 50));
  Expected expected{.period = expected_period(measured, graph, {}, change)};
  std::vector<std::int64_t> drawn{expected.period};
  std::mt19937_64 random(1);
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<int> rows;
    for (std::size_t row = 0; row < measured.rows.size(); ++row)
      rows.push_back(static_cast<int>(random() % measured.rows.size()));
    drawn.push_back(expected_period(measured, graph, rows, change));
  }
  std::sort(drawn.begin(), drawn.end());
  const std::size_t outside = drawn.size() / 20;
  expected.least = drawn[outside];
  expected.most = drawn[drawn.size() - 1 - outside];
  return expected;
}

std::string seconds(std::int64_t ns) {
  return (ns < 0 ? "-" : "") + human_seconds(static_cast<double>(std::abs(ns)) * 1e-9);
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Diagnosis diagnose(const StepTrace& trace, const ReplayGraph& graph, const std::vector<std::string>& changes,
                   const std::string& name) {
  std::vector<WhatIf> asked;  // refused before anything is computed
  for (const std::string& change : changes) asked.emplace_back(change, graph, trace.hosts);
  const ReplayTimes measured = measured_times(trace, graph, trace.clock_bound);
  MP_REQUIRE(
      measured.violations.count == 0, Exit::bad_data,
      "{}: effects come before their causes, {} times and by up to {:.3f} us: {} (clocks of hosts were not "
      "brought together, or the trace is not of this program)",
      name, measured.violations.count, static_cast<double>(measured.violations.worst) / 1e3,
      measured.violations.first);
  Diagnosis diagnosis;
  const Replayed replayed = replay(graph, measured, static_cast<int>(trace.steps.size()));
  MP_REQUIRE(replayed.finished, Exit::bad_data, "{}: its steps wait for something that never comes", name);
  diagnosis.identity = compare(trace, graph, replayed, trace.clock_bound);
  MP_REQUIRE(std::abs(diagnosis.identity.error()) <= most_error && diagnosis.identity.first_off.empty(),
             Exit::bad_data, "{}: the replay does not give the trace's own times back: {}", name,
             diagnosis.identity.first_off);
  diagnosis.expected = expect(measured, graph, nullptr);
  for (const WhatIf& change : asked)
    diagnosis.changes.push_back({change.text(), expect(measured, graph, &change)});
  if (static_cast<int>(trace.steps.size()) < fewest_steps) return diagnosis;
  const Durations paper = trace.is_priced ? trace.paper : Durations();
  const WorkModel model(graph, measured, paper);
  diagnosis.levels = levels_of(graph, measured, model);
  diagnosis.causes = causes_of(trace, graph, measured, model, paper);
  return diagnosis;
}

std::vector<std::string> findings_of(const Diagnosis& diagnosis, const StepTrace& trace,
                                     const ReplayGraph& graph) {
  if (static_cast<int>(trace.steps.size()) < fewest_steps)
    return {fmt::format("{} steps are too few to accuse anybody ({} or more; trace a longer run)",
                        trace.steps.size(), fewest_steps)};
  std::vector<std::string> said;
  for (const Cause& cause : diagnosis.causes)
    if (said.size() < most_causes) said.push_back(text_of(cause, graph, diagnosis.levels.front().period));
  if (said.empty())
    said.emplace_back(
        "nobody is slow beside the others: the step is what its program and its prices make it");
  return said;
}

std::string text_of(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph) {
  const ReplayMatch& identity = diagnosis.identity;
  std::vector<std::string> hosts = trace.hosts;
  std::sort(hosts.begin(), hosts.end());
  const auto different = std::unique(hosts.begin(), hosts.end()) - hosts.begin();
  std::string text = fmt::format(
      "steps {} to {} of {} ranks ({}), {}{}\n"
      "period {}; replayed {} ({:+.2f} %, every begin within {:.1f} us; {})\n"
      "expected {} ({} to {}), by medians over the steps\n",
      trace.steps.front(), trace.steps.back(), graph.ranks(), to_string(trace.grid), trace.device,
      trace.injected.empty() ? "" : fmt::format("; injected: {}", trace.injected), seconds(identity.measured),
      seconds(identity.replayed), 100 * identity.error(), static_cast<double>(identity.off) / 1e3,
      different <= 1 ? "one clock"
                     : fmt::format("{} hosts, clocks within {:.1f} us", different,
                                   static_cast<double>(trace.clock_bound) / 1e3),
      seconds(diagnosis.expected.period), seconds(diagnosis.expected.least),
      seconds(diagnosis.expected.most));
  if (!diagnosis.levels.empty()) {
    const std::int64_t whole = diagnosis.levels.front().period;
    text +=
        fmt::format("where a step goes\n  {:<32} {:>12} {:>6.1f} %\n", "passes and updates, nothing else",
                    seconds(diagnosis.levels.back().period), share(diagnosis.levels.back().period, whole));
    for (const StepLevel& level : diagnosis.levels)
      if (std::abs(share(level.costs, whole)) >= 0.05)
        text += fmt::format("  {:<32} {:>12} {:>6.1f} %\n", level.cause, seconds(level.costs),
                            share(level.costs, whole));
  }
  for (const std::string& finding : findings_of(diagnosis, trace, graph))
    text += fmt::format("- {}\n", finding);
  for (const WhatIfResult& change : diagnosis.changes)
    text += fmt::format(
        "what if {}: {} ({} to {}), {:.1f} % {}\n", change.change, seconds(change.expected.period),
        seconds(change.expected.least), seconds(change.expected.most),
        std::abs(share(change.expected.period - diagnosis.expected.period, diagnosis.expected.period)),
        change.expected.period > diagnosis.expected.period ? "longer" : "shorter");
  return text;
}

}  // namespace mindpipe
