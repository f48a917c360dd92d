#include "app/report/subnet_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "app/report/drawing.h"
#include "app/report/pictures.h"
#include "app/report/rank_timeline.h"
#include "trace/subnet_report.h"

namespace mindpipe {
namespace {

using namespace pictures;

constexpr double row = 24, bar_height = 16;
constexpr int colours = 6;

/// When the actions ran, from the first pass on: receives are posted long before.
SpanOf spans_from_first_work(const StepTrace& trace, const ReplayGraph& graph) {
  const SpanOf span = spans_in(trace, graph, 0);
  std::int64_t first = length_of(graph, span);
  for (int action = 0; action < graph.actions(); ++action)
    if (is_work(graph.at(action))) first = std::min(first, span(action).start);
  return [span, first](int action) {
    const Span ran = span(action);
    return Span{std::max<std::int64_t>(0, ran.start - first), std::max<std::int64_t>(0, ran.end - first)};
  };
}

/// When each subnet was under way, from its first pass to its last pass or update on any rank: each lane in a
/// colour of its own.
std::string flights_picture(const ReplayGraph& graph, const SpanOf& span, std::int64_t shown) {
  struct Flight {
    Span span;
    int lane;
  };
  std::map<std::int64_t, Flight> flights;
  for (int action = 0; action < graph.actions(); ++action) {
    const Action& what = graph.at(action);
    if (what.owner.of != Owner::subnet || !is_work(what)) continue;
    const Span ran = span(action);
    const int lane = coord_at(graph.grid(), graph.rank_of(action)).supernet;
    Span& flight = flights.try_emplace(what.owner.number, Flight{ran, lane}).first->second.span;
    flight = {std::min(flight.start, ran.start), std::max(flight.end, ran.end)};
  }
  const double height = page_top + row * static_cast<double>(flights.size()) + 24,
               each = (page_width - page_left - page_right) / static_cast<double>(shown);
  std::string text = opening("subnets under way, each from its first pass to its last update", height);
  double y = page_top;
  for (const auto& [subnet, of_lane] : flights) {
    const auto& [flight, lane] = of_lane;
    text +=
        text_at(page_left - 8, y + 13, std::to_string(subnet), "end") +
        box(fmt::format("c{}", lane % colours).c_str(), page_left + each * static_cast<double>(flight.start),
            y, std::max(0.5, each * static_cast<double>(flight.end - flight.start)), bar_height);
    y += row;
  }
  return text + "</svg>\n";
}

/// Where the time of each stage went.
std::string stages_picture(const StepTrace& trace, const ReplayGraph& graph) {
  const std::vector<StageTime> stages = stage_times(trace, graph);
  const double height = page_top + row * static_cast<double>(stages.size()) + 40,
               each = (page_width - page_left - page_right) / static_cast<double>(computed_for(trace));
  std::string text = opening("where the time of each stage goes", height);
  for (std::size_t place = 0; place < stages.size(); ++place) {
    const StageTime& stage = stages[place];
    const double y = page_top + row * static_cast<double>(place);
    text += text_at(page_left - 8, y + 13,
                    "stage " + name_of_program_rank(graph.grid(), static_cast<int>(place)), "end");
    double x = page_left;
    const auto part = [&](const char* kind, std::int64_t lasts) {
      const double long_is = each * static_cast<double>(lasts);
      text += box(kind, x, y, long_is, bar_height);
      x += long_is;
    };
    part("c0", stage.computes);
    part("c5", stage.host);
    part("c2", stage.waited(WaitReason::input));
    part("c1", stage.waited(WaitReason::owner));
    part("c7", stage.waited(WaitReason::room));
  }
  return text +
         legend({{"c0", "computes"},
                 {"c5", "host"},
                 {"c2", "waits for input"},
                 {"c1", "waits for older subnets"},
                 {"c7", "waits for room"}},
                height - 14) +
         "</svg>\n";
}

}  // namespace

std::string subnet_page(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                        const std::string& name, const std::string& text) {
  const SpanOf as_measured = spans_from_first_work(trace, graph);
  const std::int64_t shown = length_of(graph, as_measured);
  std::vector<std::string> findings;
  for (const Cause& cause : diagnosis.causes) findings.push_back(text_of_subnets(cause, trace, graph));
  return page_opening("replay: " + name, fmt::format("{}, {}", to_string(trace.grid), trace.device)) +
         list_of(findings) + timeline_picture("the last subnets as they ran", graph, as_measured, shown) +
         flights_picture(graph, as_measured, shown) + stages_picture(trace, graph) + page_closing(text);
}

}  // namespace mindpipe
