#include "app/report/replay_page.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/report/drawing.h"
#include "app/report/pictures.h"
#include "app/report/rank_timeline.h"
#include "trace/rank_speeds.h"

namespace mindpipe {
namespace {

using namespace pictures;

/// One step as it ran, as medians replay it, and with all ranks alike.
std::string timelines(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                      const ReplayTimes& ideal) {
  const std::size_t step = trace.steps.size() / 2;
  const SpanOf as_measured = spans_in(trace, graph, step);
  const auto span_in = [&](const Replayed& replayed, std::size_t shown) -> SpanOf {
    const auto& starts = replayed.starts[shown];
    const std::int64_t first = *std::min_element(starts.begin(), starts.end());
    return [&replayed, shown, first](int action) {
      return Span{replayed.starts[shown][action] - first, replayed.ends[shown][action] - first};
    };
  };
  const Replayed expected = replay(graph, expected_times(measured, graph), chained_steps),
                 alike = replay(graph, ideal, static_cast<int>(trace.steps.size()));
  const SpanOf as_expected = span_in(expected, chained_steps - 1), as_ideal = span_in(alike, step);
  const std::int64_t shown =
      std::max({length_of(graph, as_measured), length_of(graph, as_expected), length_of(graph, as_ideal)});
  return timeline_picture(fmt::format("step {} as it ran", trace.steps[step]), graph, as_measured, shown) +
         timeline_picture("a step as replayed with the medians of all steps", graph, as_expected, shown) +
         timeline_picture("a step with all hosts, micro-batches, ranks and stages alike", graph, as_ideal,
                          shown);
}

/// From the step as it ran down to passes that wait for nothing.
std::string waterfall_picture(const std::vector<StepLevel>& levels) {
  constexpr double row = 24, words = 260;
  const double height = page_top + row * static_cast<double>(levels.size()) + 24;
  const std::int64_t whole = levels.front().period;
  const double each = (page_width - page_left - page_right - words - 90) / static_cast<double>(whole);
  std::string text = opening("where a step goes: causes taken away one after the other", height);
  double y = page_top;
  const auto bar = [&](const char* kind, const std::string& what, std::int64_t from, std::int64_t costs) {
    const std::int64_t begin = std::min(from, from + costs);
    const double x = page_left + words + each * static_cast<double>(begin),
                 long_is = each * static_cast<double>(std::abs(costs));
    text += text_at(page_left, y + 13, what) + box(kind, x, y, std::max(long_is, 0.5), 16) +
            text_at(x + long_is + 6, y + 13, signed_time(costs));
    y += row;
  };
  bar("c5", "a step as it ran", 0, whole);
  for (std::size_t level = 1; level < levels.size(); ++level)
    bar(levels[level].costs >= 0 ? "c7" : "c3", levels[level].cause, levels[level].period,
        levels[level].costs);
  bar("c0", "passes and updates, nothing else", 0, levels.back().period);
  return text + "</svg>\n";
}

/// How many times as long as its peers each rank computes: replicas from left to right, stages downwards.
std::string speeds_picture(const ReplayGraph& graph, const WorkModel& model) {
  if (!model.compares()) return "";
  const Coord& grid = graph.grid();
  const int columns = grid.data * grid.tensor, rows = grid.pipeline;
  const double cell = std::clamp((page_width - page_left - page_right) / columns, 8.0, 90.0), row = 30,
               height = page_top + row * rows + 36;
  const RankSpeeds speeds(model);
  std::string text = opening(
      "how many times as long as its peers a rank computes: stages downwards, replicas across", height);
  for (int stage = 0; stage < rows; ++stage) {
    text += text_at(page_left - 8, page_top + row * stage + 19, fmt::format("stage {}", stage), "end");
    for (int column = 0; column < columns; ++column) {
      const double speed =
          speeds.usual(rank_at(grid, {column % grid.tensor, column / grid.tensor, stage, 0}));
      const double x = page_left + cell * column, y = page_top + row * stage;
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill-opacity=\"{:.2f}\"/>\n",
          speed >= 1 ? "c7" : "c0", x, y, cell - 2, row - 2,
          std::clamp(0.06 + std::abs(speed - 1), 0.06, 0.5));
      if (cell >= 40) text += text_at(x + cell / 2 - 1, y + 19, fmt::format("{:.2f}", speed), "middle");
    }
  }
  return text + "</svg>\n";
}

/// How long each step took, from the end of one to the end of the next.
std::string periods_picture(const StepTrace& trace, const Replayed& replayed) {
  constexpr double height = 240, bottom = 48;
  std::vector<double> ms;
  for (std::size_t step = 1; step < trace.steps.size(); ++step)
    ms.push_back(1e-6 * static_cast<double>(replayed.end_of_step(step) - replayed.end_of_step(step - 1)));
  if (ms.size() < 2) return "";
  const double most = *std::max_element(ms.begin(), ms.end()), first = static_cast<double>(trace.steps[1]);
  const Panel panel{page_left,
                    page_top,
                    page_width - page_right,
                    height - bottom,
                    {first - 0.5, first + static_cast<double>(ms.size()) - 0.5},
                    {0, most * 1.1}};
  std::string text = opening("how long each step took, in ms", height) +
                     lines_across(panel, tick_of(most, 4)) +
                     numbers_below(panel, std::max(1.0, tick_of(panel.across.length(), 5)));
  for (std::size_t step = 0; step < ms.size(); ++step) {
    const double x = panel.x(first + static_cast<double>(step));
    text += box("c0", x - 6, panel.y(ms[step]), 12, panel.y(0) - panel.y(ms[step]));
  }
  return text + "</svg>\n";
}

/// By how much a step grows with each stage's work, and how much longer that may take for nothing.
std::string stages_picture(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured) {
  constexpr double more = 0.05, allowed = 0.002, most = 1, row = 24;
  const int stages = graph.grid().pipeline;
  const ReplayTimes expected = expected_times(measured, graph);
  const std::vector<std::string> nodes = trace.nodes();
  const auto period = [&](int stage, double longer) {
    ReplayTimes times = expected;
    WhatIf(fmt::format("stage:{}={}", stage, 1 + longer), graph, nodes).apply(times);
    return static_cast<double>(replayed_period(graph, times, chained_steps));
  };
  const double whole = period(0, 0);
  std::string text =
      opening("how much of a step grows with a stage's work, and how much longer that may take for nothing",
              page_top + row * stages + 20);
  for (int stage = 0; stage < stages; ++stage) {
    const double critical = (period(stage, more) / whole - 1) / more;
    double least = 0, end = most;
    for (int turn = 0; turn < 7; ++turn) {
      const double middle = (least + end) / 2;
      (period(stage, middle) <= whole * (1 + allowed) ? least : end) = middle;
    }
    const double y = page_top + row * stage, long_is = 500 * std::clamp(critical, 0.0, 1.0);
    text += text_at(page_left - 8, y + 13, fmt::format("stage {}", stage), "end") +
            box("c0", page_left, y, std::max(0.5, long_is), 16) +
            text_at(page_left + long_is + 8, y + 13,
                    fmt::format("{:.0f} % of a step grows with it; it may take {:.1f} % longer for nothing",
                                100 * critical, 100 * least));
  }
  return text + "</svg>\n";
}

}  // namespace

std::string replay_page(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                        const std::string& name, const std::string& text) {
  std::string page =
      page_opening("replay: " + name, fmt::format("{}, {}", to_string(trace.grid), trace.device));
  page += list_of(findings_of(diagnosis, trace, graph));
  const ReplayTimes measured = measured_times(trace, graph, trace.clock_bound);
  const WorkModel model(graph, measured, trace.is_priced ? trace.paper : Durations());
  page += timelines(trace, graph, measured, ideal_times(graph, measured, model));
  if (!diagnosis.levels.empty()) page += waterfall_picture(diagnosis.levels);
  page += speeds_picture(graph, model) +
          periods_picture(trace, replay(graph, measured, static_cast<int>(trace.steps.size()))) +
          stages_picture(trace, graph, measured);
  return page + page_closing(text);
}

}  // namespace mindpipe
