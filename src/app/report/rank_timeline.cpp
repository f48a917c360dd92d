#include "app/report/rank_timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "app/report/pictures.h"
#include "trace/diagnosis.h"

namespace mindpipe {
namespace {

constexpr int most_rows = 32;

}  // namespace

SpanOf spans_in(const StepTrace& trace, const ReplayGraph& graph, std::size_t step) {
  const auto at = [&trace, &graph, step](int action) -> const Recorder::Times& {
    return trace.ranks[graph.rank_of(action)].steps[step][graph.index_of(action)];
  };
  std::int64_t zero = at(0).start;
  for (int action = 0; action < graph.actions(); ++action) zero = std::min(zero, at(action).start);
  return [at, zero](int action) { return Span{at(action).start - zero, at(action).end - zero}; };
}

std::int64_t length_of(const ReplayGraph& graph, const SpanOf& span) {
  std::int64_t last = 0;
  for (int action = 0; action < graph.actions(); ++action) last = std::max(last, span(action).end);
  return last;
}

std::string timeline_picture(const std::string& title, const ReplayGraph& graph, const SpanOf& span,
                             std::int64_t shown) {
  using namespace pictures;
  constexpr double row = 24;
  const int rows = std::min(graph.ranks(), most_rows);
  const double height = page_top + row * rows + 64, pixels = page_width - page_left - page_right,
               each = pixels / static_cast<double>(shown);
  std::string text = opening(
      title + (rows < graph.ranks() ? fmt::format(" (the first {} of {} ranks)", rows, graph.ranks()) : ""),
      height);
  for (int rank = 0; rank < rows; ++rank) {
    const double y = page_top + row * rank;
    text += text_at(page_left - 8, y + 13, fmt::format("rank {}", rank), "end") +
            box("idle", page_left, y, pixels, 16);
    Row passes(y, 16, each), sums(y + 17, 4, each);
    std::vector<int> by_start(graph.first_of(rank + 1) - graph.first_of(rank));
    std::iota(by_start.begin(), by_start.end(), graph.first_of(rank));
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](int a, int b) { return span(a).start < span(b).start; });
    for (const int action : by_start)
      if (const char* kind = class_of_action(graph.at(action)); kind != nullptr)
        (is_communication(graph.at(action)) ? sums : passes).add(kind, span(action));
    text += passes.text() + sums.text();
  }
  text += text_at(page_left, height - 40, "0") +
          text_at(page_width - page_right, height - 40, signed_time(shown), "end");
  return text + legend_of_steps(height - 14) + "</svg>\n";
}

}  // namespace mindpipe
