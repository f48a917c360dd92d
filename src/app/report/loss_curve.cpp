#include "app/report/loss_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "app/report/drawing.h"
#include "app/run/run_directory.h"
#include "core/check.h"

namespace mindpipe {
namespace {

using Points = std::vector<LossCurve::Point>;

void add_loss(Points& points, std::int64_t step, const JsonMembers& line, const char* key) {
  const auto loss = line.numbers.find(key);
  if (loss != line.numbers.end()) points.push_back({step, loss->second});
}

/// From the lowest to the highest loss, never empty.
AxisRange bounds_of(const Points& training, const Points& validation) {
  AxisRange span{training.front().loss, training.front().loss};
  for (const Points* points : {&training, &validation})
    for (const auto& point : *points) {
      span.least = std::min(span.least, point.loss);
      span.most = std::max(span.most, point.loss);
    }
  if (span.most == span.least) span.most += 1;
  return span;
}

/// One character of a column that is `filled` rows high, `row` rows above the ground.
const char* cell(double filled, int row, bool utf8) {
  static const char* const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int eighths = static_cast<int>(std::lround(std::clamp(filled - row, 0.0, 1.0) * 8));
  if (utf8) return blocks[eighths];
  return eighths > 4 ? "#" : eighths > 0 ? "." : " ";
}

}  // namespace

LossCurve read_losses(const std::string& run_directory) {
  const std::string path = run_directory + "/metrics.jsonl";
  LossCurve curve;
  const bool is_there = read_metrics(run_directory, [&](const JsonMembers& line) {
    const auto step = line.integers.find("step");
    if (step == line.integers.end()) return;
    if (line.texts.contains("source")) return;  // a part of the evaluation that the step's own line tells
    add_loss(curve.training, step->second, line, "loss");
    add_loss(curve.validation, step->second, line, "validation_loss");
    if (const auto seconds = line.numbers.find("seconds"); seconds != line.numbers.end())
      curve.seconds += seconds->second;
  });
  MP_REQUIRE(is_there, Exit::input_missing, "{} cannot be read (name the run.dir of a training)", path);
  MP_REQUIRE(!curve.training.empty(), Exit::bad_data, "{} tells of no step", path);
  return curve;
}

Points means_of_intervals(const Points& points, int most) {
  const std::size_t count = std::min(points.size(), static_cast<std::size_t>(std::max(most, 1)));
  Points means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = points.size() * i / count, end = points.size() * (i + 1) / count;
    double sum = 0;
    for (std::size_t at = begin; at < end; ++at) sum += points[at].loss;
    means.push_back({points[end - 1].step, sum / static_cast<double>(end - begin)});
  }
  return means;
}

std::string drawn_as_text(const LossCurve& curve, int columns, int rows, bool utf8) {
  constexpr int margin = 9;  // for the losses at the left
  const Points points = means_of_intervals(curve.training, std::max(columns - margin, 8));
  const AxisRange span = bounds_of(points, {});
  std::string text;
  for (int row = rows - 1; row >= 0; --row) {
    const bool says = row == rows - 1 || row == 0;
    const double loss = row == 0 ? span.least : span.most;
    text += says ? fmt::format("{:>7.3f} ", loss) : std::string(margin - 1, ' ');
    text += utf8 ? "│" : "|";
    std::string line;
    for (const auto& point : points) {
      const double height = (point.loss - span.least) / (span.most - span.least);
      line += cell(height * (rows - 0.25) + 0.25, row, utf8);  // also the lowest column is seen
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string last = fmt::format("step {}", curve.training.back().step);
  const std::string first = std::to_string(points.front().step);
  const int width = std::max(static_cast<int>(points.size() - first.size()), 1);
  text += fmt::format("{:{}}{}{:>{}}\n", "", margin, first, last, width);
  if (!curve.validation.empty()) {
    text += "validation loss:";
    for (const auto& point : means_of_intervals(curve.validation, 6))
      text += fmt::format(" {:.3f}", point.loss);
    text += fmt::format(" at step {}\n", curve.validation.back().step);
  }
  return text;
}

namespace {

constexpr double width = 720, height = 360, left = 64, right = 24, top = 48, bottom = 48;

}  // namespace

std::string drawn_as_svg(const LossCurve& curve, const std::string& title) {
  const Points points = means_of_intervals(curve.training, 300);
  const AxisRange steps{0, static_cast<double>(std::max<std::int64_t>(curve.training.back().step, 1))};
  const Panel panel{left, top, width - right, height - bottom, steps, bounds_of(points, curve.validation)};
  std::string text = svg_opening(width, height, title,
                                 ".training { fill: none; stroke: #0969da; stroke-width: 2 } "
                                 ".validation { fill: #bc4c00 }",
                                 ".training { stroke: #58a6ff } .validation { fill: #f0883e }");
  text += fmt::format("<text class=\"title\" x=\"{:.0f}\" y=\"28\">{}</text>\n", left, escaped(title));
  text += lines_across(panel, tick_of(panel.up.length(), 4));
  text += numbers_below(panel, std::max(tick_of(steps.length(), 4), 1.0));
  text += "<path class=\"training\" d=\"";
  for (const auto& point : points)
    text += fmt::format("{}{:.1f} {:.1f}", &point == &points.front() ? "M" : "L",
                        panel.x(static_cast<double>(point.step)), panel.y(point.loss));
  text += "\"/>\n";
  for (const auto& point : curve.validation)
    text += fmt::format("<circle class=\"validation\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n",
                        panel.x(static_cast<double>(point.step)), panel.y(point.loss));
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">step</text>\n", width - right,
                      height - 10);
  const auto& last = curve.training.back();
  std::string legend = fmt::format("training loss {:.3f} at step {}", points.back().loss, last.step);
  if (!curve.validation.empty())
    legend += fmt::format(", validation {:.3f} (dots)", curve.validation.back().loss);
  text += fmt::format("<text x=\"{:.1f}\" y=\"28\" text-anchor=\"end\">{}</text>\n", width - right, legend);
  return text + "</svg>\n";
}

}  // namespace mindpipe
