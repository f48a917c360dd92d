#include "trace/run_changes.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/text.h"

namespace mindpipe {
namespace {

constexpr double worth_a_line = 0.01;
constexpr std::size_t most_lines = 8;

/// A part of all that takes time: the actions that it is, and whether their host's time or their own is
/// meant.
struct TimedPart {
  std::string what;
  std::function<bool(int action)> has;
  enum : std::uint8_t { own, lags, tensor_sums } kind = own;
};

std::vector<TimedPart> timed_parts(const ReplayGraph& graph) {
  std::vector<TimedPart> parts;
  for (int rank = 0; rank < graph.ranks(); ++rank)
    parts.push_back({graph.name_of_rank(rank) + " computes", [&graph, rank](int action) {
                       return graph.rank_of(action) == rank && is_work(graph.at(action));
                     }});
  for (int from = 0; from + 1 < graph.grid().pipeline; ++from)
    for (int to = from + 1; to < graph.grid().pipeline; ++to)
      parts.push_back(
          {fmt::format("messages between stages {} and {} take", from, to), [&graph, from, to](int action) {
             const int here = graph.stage_of(action), peer = graph.at(action).peer;
             return is_message(graph.at(action)) && std::min(here, peer) == from &&
                    std::max(here, peer) == to;
           }});
  for (const auto& [group, what] : {std::pair(Members::data, "sums and gathers over data take"),
                                    std::pair(Members::grid, "sums of scalars take")})
    parts.push_back({what, [&graph, group = group](int action) {
                       return is_collective(graph.at(action)) && graph.at(action).group == group;
                     }});
  parts.push_back({"tensor sums take", [](int) { return true; }, TimedPart::tensor_sums});
  parts.push_back({"the host between actions takes", [](int) { return true; }, TimedPart::lags});
  return parts;
}

/// Puts a part of a row back to what it was, and counts both times of it.
void put_part_back(const TimedPart& part, const ReplayGraph& graph, const ReplayTimes& before,
                   ReplayTimes& after, double& was, double& is) {
  const ReplayRow& old = before.rows.front();
  ReplayRow& row = after.rows.front();
  const auto put = [&](std::int64_t& now, std::int64_t then) {
    was += static_cast<double>(then);
    is += static_cast<double>(now);
    now = then;
  };
  for (int action = 0; action < graph.actions(); ++action) {
    if (!part.has(action)) continue;
    if (part.kind == TimedPart::lags) put(row.lag[action], old.lag[action]);
    if (part.kind == TimedPart::own) {
      put(row.lasts[action], old.lasts[action]);
      row.eager[action] = old.eager[action];
    }
    for (int sum = after.sums_of[action]; sum < after.sums_of[action + 1]; ++sum) {
      if (part.kind == TimedPart::own) put(row.sums[sum].before, old.sums[sum].before);
      if (part.kind == TimedPart::tensor_sums) put(row.sums[sum].takes, old.sums[sum].takes);
    }
  }
}

/// "rank 3 (...) computes 1.50 times as long as before: 2.1 ms of a step"
std::string text_of(const RunChange& change) {
  const std::string times =
      change.factor > 0 ? fmt::format("{:.2f} times as long as before", change.factor) : "time now";
  return fmt::format("- {} {}: {} a step\n", change.what, times,
                     (change.costs >= 0 ? "+" : "") + signed_time(change.costs));
}

bool same_program(const StepTrace& before, const StepTrace& after) {
  return before.grid == after.grid && before.program.ranks == after.program.ranks;
}

/// Where the steps of two programs go, cause by cause.
std::string levels_text(const StepTrace& before, const StepTrace& after, const std::string& name_before,
                        const std::string& name_after) {
  std::vector<std::pair<std::string, std::array<std::int64_t, 2>>> rows;
  for (const int which : {0, 1}) {
    const StepTrace& trace = which == 0 ? before : after;
    const Diagnosis diagnosis =
        diagnose(trace, ReplayGraph(trace.grid, trace.program), {}, which == 0 ? name_before : name_after);
    if (diagnosis.levels.empty()) return "";
    const auto add = [&](const std::string& cause, std::int64_t costs) {
      auto row =
          std::find_if(rows.begin(), rows.end(), [&](const auto& each) { return each.first == cause; });
      if (row == rows.end()) row = rows.insert(rows.end(), {cause, {}});
      row->second[which] = costs;
    };
    add("passes and updates, nothing else", diagnosis.levels.back().period);
    for (const StepLevel& level : diagnosis.levels)
      if (&level != &diagnosis.levels.front()) add(level.cause, level.costs);
  }
  std::string text = fmt::format("another program or grid; where their steps go\n  {:<32} {:>12} {:>12}\n",
                                 "", "before", "now");
  for (const auto& [cause, costs] : rows)
    text += fmt::format("  {:<32} {:>12} {:>12}\n", cause, signed_time(costs[0]), signed_time(costs[1]));
  return text;
}

}  // namespace

std::vector<RunChange> changes_between(const ReplayGraph& graph, const ReplayTimes& before,
                                       const ReplayTimes& after) {
  const ReplayTimes old = expected_times(before, graph), now = expected_times(after, graph);
  const std::int64_t period = replayed_period(graph, now, chained_steps);
  std::vector<RunChange> changes;
  for (const TimedPart& part : timed_parts(graph)) {
    ReplayTimes without = now;
    double was = 0, is = 0;
    put_part_back(part, graph, old, without, was, is);
    const std::int64_t costs = period - replayed_period(graph, without, chained_steps);
    if (std::abs(static_cast<double>(costs)) >= worth_a_line * static_cast<double>(period))
      changes.push_back({part.what, was > 0 ? is / was : 0, costs});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const RunChange& a, const RunChange& b) {
    return std::abs(a.costs) > std::abs(b.costs);
  });
  return changes;
}

std::string text_of_changes(const StepTrace& before, const StepTrace& after, const std::string& name_before,
                            const std::string& name_after) {
  const ReplayGraph graph(after.grid, after.program), old(before.grid, before.program);
  const ReplayTimes now = sound_times(after, graph, name_after), then = sound_times(before, old, name_before);
  const auto period = [](const ReplayGraph& of, const ReplayTimes& times) {
    return replayed_period(of, expected_times(times, of), chained_steps);
  };
  const std::int64_t was = period(old, then), is = period(graph, now);
  std::string text = fmt::format("{}: {} a step, and {}: {}, {}\n", name_before, signed_time(was), name_after,
                                 signed_time(is),
                                 longer_or_shorter(static_cast<double>(is - was) / static_cast<double>(was)));
  if (!same_program(before, after) || then.sums_of != now.sums_of)
    return text + levels_text(before, after, name_before, name_after);
  std::vector<RunChange> changes = changes_between(graph, then, now);
  if (changes.empty()) return text + "- nothing alone makes a hundredth of a step of that\n";
  changes.resize(std::min(changes.size(), most_lines));
  for (const RunChange& change : changes) text += text_of(change);
  return text;
}

}  // namespace mindpipe
