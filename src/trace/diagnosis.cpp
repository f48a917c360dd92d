#include "trace/diagnosis.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "core/check.h"
#include "core/text.h"
#include "trace/host_reasons.h"

namespace mindpipe {
namespace {

constexpr double most_error = 0.005;
constexpr std::size_t most_causes = 3, most_levels = 2;
constexpr double much_of_step = 5;  // percent

std::int64_t expected_period(const ReplayTimes& measured, const ReplayGraph& graph,
                             const std::vector<int>& rows) {
  return replayed_period(graph, expected_times(measured, graph, rows), chained_steps);
}

/// How many draws of a trace's steps are replayed, each with all changes: as many as a few seconds allow.
int draws_of(const ReplayTimes& measured, const ReplayGraph& graph, std::size_t changes) {
  constexpr std::int64_t most_actions = 250'000'000, most_draws = 50;
  const std::int64_t each =
      std::int64_t{graph.actions()} *
      (chained_steps * static_cast<std::int64_t>(1 + changes) + std::ssize(measured.rows));
  return static_cast<int>(std::min(most_actions / std::max<std::int64_t>(1, each), most_draws));
}

/// The periods by medians over all steps, and over draws of them: as it is, and with each change by itself.
std::vector<Expected> expect(const ReplayTimes& measured, const ReplayGraph& graph,
                             const std::vector<WhatIf>& changes) {
  std::vector<std::vector<std::int64_t>> periods(1 + changes.size());
  const auto replay_all = [&](const std::vector<int>& rows) {
    const ReplayTimes expected = expected_times(measured, graph, rows);
    periods[0].push_back(replayed_period(graph, expected, chained_steps));
    for (std::size_t change = 0; change < changes.size(); ++change) {
      ReplayTimes changed = expected;
      changes[change].apply(changed);
      periods[1 + change].push_back(replayed_period(graph, changed, chained_steps));
    }
  };
  replay_all({});
  std::mt19937_64 random(1);
  const int draws = draws_of(measured, graph, changes.size());
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<int> rows;
    for (std::size_t row = 0; row < measured.rows.size(); ++row)
      rows.push_back(static_cast<int>(random() % measured.rows.size()));
    replay_all(rows);
  }
  std::vector<Expected> found;
  for (std::vector<std::int64_t>& drawn : periods) {
    const std::int64_t period = drawn.front();
    std::sort(drawn.begin(), drawn.end());
    const std::size_t outside = drawn.size() / 20;
    found.push_back({period, drawn[outside], drawn[drawn.size() - 1 - outside], draws});
  }
  return found;
}

/// How far the period by the medians of every second step, and by their plain averages, is off that by the
/// medians of the others.
void hold_out(Diagnosis& diagnosis, const StepTrace& trace, const ReplayTimes& measured,
              const ReplayGraph& graph) {
  std::array<std::vector<int>, 2> halves;
  for (int row = 0; row < static_cast<int>(measured.rows.size()); ++row) halves[row % 2].push_back(row);
  if (halves[1].empty()) return;
  const auto others = static_cast<double>(expected_period(measured, graph, halves[1]));
  const std::int64_t plain =
      replayed_period(graph, plain_averages(trace, measured, graph, halves[0]), chained_steps);
  diagnosis.held_out = static_cast<double>(expected_period(measured, graph, halves[0])) / others - 1;
  diagnosis.held_out_plain = static_cast<double>(plain) / others - 1;
}

double percent_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// A trace's own times, and how a replay of them compares.
struct OwnReplay {
  ReplayTimes measured;
  ReplayMatch identity;
  std::string complaint;  ///< why nothing can be said; empty: all is as it should be
};

OwnReplay replay_itself(const StepTrace& trace, const ReplayGraph& graph, const std::string& name) {
  OwnReplay own{.measured = measured_times(trace, graph, trace.clock_bound)};
  const Violations& found = own.measured.violations;
  if (found.count > 0) {
    own.complaint = fmt::format(
        "{}: effects come before their causes, {} times and by up to {:.3f} us: {} (clocks of hosts were not "
        "brought together, or the trace is not of this program)",
        name, found.count, static_cast<double>(found.worst) / 1e3, found.first);
    return own;
  }
  const Replayed replayed = replay(graph, own.measured, static_cast<int>(trace.steps.size()));
  if (!replayed.finished) {
    own.complaint = fmt::format("{}: its steps wait for something that never comes", name);
    return own;
  }
  own.identity = compare(trace, graph, replayed, trace.clock_bound);
  if (std::abs(own.identity.error()) > most_error || !own.identity.first_off.empty())
    own.complaint = fmt::format("{}: the replay does not give the trace's own times back: {}", name,
                                own.identity.first_off);
  return own;
}

std::set<std::string> hosts_of(const StepTrace& trace) { return {trace.hosts.begin(), trace.hosts.end()}; }

/// Where a step goes, and who is to blame; of fewer steps than it takes nothing. `compares`: whether levels
/// are held beside what they add to the ideal.
void find_causes(Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                 const ReplayTimes& measured, bool compares) {
  if (static_cast<int>(trace.steps.size()) < fewest_steps) return;
  const Durations paper = trace.is_priced ? trace.paper : Durations();
  const WorkModel model(graph, measured, paper);
  const TracedPorts traffic(trace, graph, measured);
  diagnosis.levels = levels_of(graph, measured, model, Counted::behind_the_first, &traffic);
  if (compares) compare_with_ideal(diagnosis.levels, graph, measured, model, &traffic);
  diagnosis.causes = causes_of(trace, graph, measured, model, paper, Counted::behind_the_first, &traffic,
                               &diagnosis.suspected);
  for (Cause& cause : diagnosis.causes) {
    cause.reason = likely_reason(trace, cause);
    if (cause.rank >= 0 && hosts_of(trace).size() > 1) cause.place = trace.hosts[cause.rank];
  }
}

/// What a level's cause adds to the ideal, if that is another time.
std::string beside_ideal(const StepLevel& level) {
  if (level.interacts.empty()) return "";
  return fmt::format("; alone it costs {}: interacts with {}", signed_time(*level.added), level.interacts);
}

/// "the schedule's bubble costs 4.1 ms a step (23.0 %): ..."
std::vector<std::string> dear_levels(const std::vector<StepLevel>& levels) {
  std::vector<StepLevel> dear;
  const std::int64_t whole = levels.front().period;
  for (const StepLevel& level : levels)
    if (!level.remedy.empty() && percent_of(level.costs, whole) >= much_of_step) dear.push_back(level);
  std::stable_sort(dear.begin(), dear.end(),
                   [](const StepLevel& a, const StepLevel& b) { return a.costs > b.costs; });
  dear.resize(std::min(dear.size(), most_levels));
  std::vector<std::string> said;
  for (const StepLevel& level : dear)
    said.push_back(fmt::format("{}: {} of a step ({:.1f} %); {}", level.cause, signed_time(level.costs),
                               percent_of(level.costs, whole), level.remedy));
  return said;
}

}  // namespace

std::string signed_time(std::int64_t ns) {
  return (ns < 0 ? "-" : "") + human_seconds(static_cast<double>(std::abs(ns)) * 1e-9);
}

Diagnosis diagnose(const StepTrace& trace, const ReplayGraph& graph, const std::vector<std::string>& changes,
                   const std::string& name) {
  std::vector<WhatIf> asked;  // refused before anything is computed
  const std::vector<std::string> nodes = trace.nodes();
  for (const std::string& change : changes) asked.emplace_back(change, graph, nodes);
  const OwnReplay own = replay_itself(trace, graph, name);
  MP_REQUIRE(own.complaint.empty(), Exit::bad_data, "{}", own.complaint);
  const std::vector<Expected> expected = expect(own.measured, graph, asked);
  Diagnosis diagnosis{.identity = own.identity, .expected = expected.front()};
  hold_out(diagnosis, trace, own.measured, graph);
  for (std::size_t change = 0; change < asked.size(); ++change)
    diagnosis.changes.push_back({asked[change].text(), expected[1 + change]});
  find_causes(diagnosis, trace, graph, own.measured, true);
  return diagnosis;
}

ReplayTimes sound_times(const StepTrace& trace, const ReplayGraph& graph, const std::string& name) {
  OwnReplay own = replay_itself(trace, graph, name);
  MP_REQUIRE(own.complaint.empty(), Exit::bad_data, "{}", own.complaint);
  return std::move(own.measured);
}

std::vector<std::string> first_lines(const StepTrace& trace, const std::string& name) {
  const ReplayGraph graph(trace.grid, trace.program);
  const OwnReplay own = replay_itself(trace, graph, name);
  if (!own.complaint.empty()) return {own.complaint};
  Diagnosis diagnosis;
  find_causes(diagnosis, trace, graph, own.measured, false);
  return findings_of(diagnosis, trace, graph);
}

std::vector<std::string> findings_of(const Diagnosis& diagnosis, const StepTrace& trace,
                                     const ReplayGraph& graph) {
  if (static_cast<int>(trace.steps.size()) < fewest_steps)
    return {fmt::format("{} steps are too few to accuse anybody ({} or more; trace a longer run)",
                        trace.steps.size(), fewest_steps)};
  std::vector<std::string> said;
  for (const Cause& cause : diagnosis.causes)
    if (said.size() < most_causes) said.push_back(text_of(cause, graph, diagnosis.levels.front().period));
  if (!diagnosis.suspected.empty())
    said.push_back(text_of_suspect(diagnosis.suspected.front(), graph, trace.steps.size()));
  if (said.empty())
    said.emplace_back(
        "nobody is slow beside the others: the step is what its program and its prices make it");
  for (std::string& level : dear_levels(diagnosis.levels)) said.push_back(std::move(level));
  if (std::string busy = busy_machine(trace, diagnosis.levels.front().period); !busy.empty())
    said.push_back(std::move(busy));
  return said;
}

std::string text_of(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph) {
  const ReplayMatch& identity = diagnosis.identity;
  const std::size_t different = hosts_of(trace).size();
  std::string text = fmt::format(
      "steps {} to {} of {} ranks ({}), {}{}\n"
      "period {}; replayed {} ({}, every begin within {:.1f} us; {})\n"
      "expected {} ({} to {}), by medians over the steps and over {} draws of them\n",
      trace.steps.front(), trace.steps.back(), graph.ranks(), to_string(trace.grid), trace.device,
      trace.injected.empty() ? "" : fmt::format("; injected: {}", trace.injected),
      signed_time(identity.measured), signed_time(identity.replayed), signed_percent(identity.error(), 2),
      static_cast<double>(identity.off) / 1e3,
      different <= 1 ? "one clock"
                     : fmt::format("{} hosts, clocks within {:.1f} us", different,
                                   static_cast<double>(trace.clock_bound) / 1e3),
      signed_time(diagnosis.expected.period), signed_time(diagnosis.expected.least),
      signed_time(diagnosis.expected.most), diagnosis.expected.draws);
  if (trace.pauses > 0)
    text += fmt::format("left out: {} pause{} of all ranks between steps, {} in all (evaluations, saves)\n",
                        trace.pauses, trace.pauses == 1 ? "" : "s", signed_time(trace.paused));
  if (!diagnosis.levels.empty()) {
    const std::int64_t whole = diagnosis.levels.front().period;
    text += fmt::format("where a step goes\n  {:<32} {:>12} {:>6.1f} %\n", "passes and updates, nothing else",
                        signed_time(diagnosis.levels.back().period),
                        percent_of(diagnosis.levels.back().period, whole));
    for (const StepLevel& level : diagnosis.levels)
      if (std::abs(percent_of(level.costs, whole)) >= 0.05)
        text += fmt::format("  {:<32} {:>12} {:>6.1f} %{}\n", level.cause, signed_time(level.costs),
                            percent_of(level.costs, whole), beside_ideal(level));
  }
  for (const std::string& finding : findings_of(diagnosis, trace, graph))
    text += fmt::format("- {}\n", finding);
  for (const WhatIfResult& change : diagnosis.changes)
    text += fmt::format(
        "what if {}: {} ({} to {}), {}{}\n", change.change, signed_time(change.expected.period),
        signed_time(change.expected.least), signed_time(change.expected.most),
        longer_or_shorter(
            percent_of(change.expected.period - diagnosis.expected.period, diagnosis.expected.period) / 100),
        change.note.empty() ? "" : " (" + change.note + ")");
  return text;
}

}  // namespace mindpipe
