#include <fmt/core.h>

#include <fstream>

#include "app/plan/plan_ports.h"
#include "app/report/drawing.h"
#include "core/check.h"
#include "core/text.h"
#include "program/folded.h"

// Draws one training on paper in three ways: its sums over data behind all passes, folded under them without
// classes, and folded with them. Without classes a chunk's sums leave in one piece, and whoever came first
// leaves first. Usage: draw_contention PICTURE.svg
namespace mindpipe {
namespace {

constexpr double width = 1200, left = 150, right = 24, top = 44, row = 22, gap = 46;
constexpr int stage = 1, chunks = 4;
constexpr double sums_in_forwards = 0.28 * 79.9;

constexpr const char* light =
    ".forward { fill: #0969da } .backward { fill: #bc4c00 } .message { fill: #1a7f37 } .sum { fill: #8250df "
    "} "
    ".idle { fill: #eaeef2 }";
constexpr const char* dark =
    ".forward { fill: #58a6ff } .backward { fill: #f0883e } .message { fill: #3fb950 } .sum { fill: #a475f9 "
    "} "
    ".idle { fill: #21262d }";

struct Way {
  const char* words;
  Timeline line;
  Program program;
  std::vector<Ports::Left> transfers;
};

Way simulated(const char* words, const Folded::InTime& lists) {
  Way way{.words = words, .program = lists.program};
  way.line = simulate(lists.program, lists.durations, lists.network,
                      [&](const Ports::Left& left) { way.transfers.push_back(left); });
  MP_CHECK(way.line.finished, "{} stand still", words);
  return way;
}

double seconds(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }

/// Rows of one way of a stage, below each other from `y` on.
class Rows {
 public:
  Rows(double y, double pixels_a_second) : y_(y), each_(pixels_a_second) {}
  void begin(const char* name, std::int64_t length) {
    text_ += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 8, y_ + 12,
                         name);
    add("idle", 0, length);
  }
  void add(const char* kind, std::int64_t from, std::int64_t to) {
    text_ += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"16\"/>\n",
                         kind, left + seconds(from) * each_, y_, std::max(0.2, seconds(to - from) * each_));
  }
  void end() { y_ += row; }
  const std::string& text() const { return text_; }

 private:
  double y_, each_;
  std::string text_;
};

/// What goes through a port of a rank is a sum of its group, or a message; sums in one piece are messages of
/// the rank to itself.
const char* kind_of(const Ports::Transfer& transfer) {
  return transfer.from == transfer.to ? "sum" : "message";
}

std::string rows_of(const Way& way, double y, double pixels_a_second) {
  Rows rows(y, pixels_a_second);
  rows.begin("compute", way.line.step);
  const std::vector<Action>& list = way.program.ranks[stage];
  for (std::size_t index = 0; index < list.size(); ++index) {
    const Span& span = way.line.spans[stage][index];
    if (is_pass(list[index]))
      rows.add(is_forward(list[index]) ? "forward" : "backward", span.start, span.end);
  }
  rows.end();
  rows.begin("out port", way.line.step);
  for (const Ports::Left& one : way.transfers)
    if (one.transfer.from == stage) rows.add(kind_of(one.transfer), one.left - one.transfer.takes, one.left);
  rows.end();
  rows.begin("in port", way.line.step);
  for (const Ports::Left& one : way.transfers)
    if (one.transfer.to == stage)
      rows.add(kind_of(one.transfer), one.arrived - one.transfer.takes, one.arrived);
  return rows.text();
}

std::string picture_of(const std::vector<Way>& ways, const std::string& sentence) {
  std::int64_t longest = 0;
  for (const Way& way : ways) longest = std::max(longest, way.line.step);
  const double height = top + static_cast<double>(ways.size()) * (3 * row + gap) + 40,
               each = (width - left - right) / seconds(longest);
  std::string text =
      svg_opening(width, height, "sums over data and messages at the ports of a stage", light, dark);
  double y = top;
  for (const Way& way : ways) {
    text += fmt::format("<text class=\"title\" x=\"{:.0f}\" y=\"{:.0f}\">{}: {}</text>\n", left, y - 8,
                        escaped(way.words), human_seconds(seconds(way.line.step)));
    text += rows_of(way, y, each);
    y += 3 * row + gap;
  }
  double x = left;
  for (const char* kind : {"forward", "backward", "message", "sum", "idle"}) {
    text += fmt::format(
        "<rect class=\"{0}\" x=\"{1:.0f}\" y=\"{2:.0f}\" width=\"12\" height=\"12\"/>\n"
        "<text x=\"{3:.0f}\" y=\"{4:.0f}\">{0}</text>\n",
        kind, x, height - 62, x + 18, height - 52);
    x += 110;
  }
  return text + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n</svg>\n", left, height - 20,
                            escaped(sentence));
}

int draw(const char* path) {
  const Folded folded("breadth-first", chunks, sums_in_forwards);
  const std::vector<Way> ways{simulated("unfolded: sums behind all passes", folded.sums_behind_passes()),
                              simulated("folded without classes: a chunk's sums in one piece, first come",
                                        folded.sums_in_one_piece()),
                              simulated("folded with classes: sums in parts, behind messages",
                                        {folded.step.program, folded.durations(), folded.network})};
  for (const Way& way : ways) fmt::print("{:<64} {}\n", way.words, human_seconds(seconds(way.line.step)));
  const PortCosts costs = port_costs_of_step(folded.step, folded.outline);
  const std::string sentence =
      costs.pairs.empty() ? "nobody is held up" : pair_text(costs.pairs.front(), costs, "step");
  fmt::print("{}\n", sentence);
  std::ofstream(path) << picture_of(ways, sentence);
  return 0;
}

}  // namespace
}  // namespace mindpipe

int main(int count, char** arguments) { return count == 2 ? mindpipe::draw(arguments[1]) : 2; }
