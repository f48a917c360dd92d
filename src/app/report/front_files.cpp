#include "app/report/front_files.h"

#include <algorithm>
#include <cmath>

#include "app/report/drawing.h"
#include "core/check.h"
#include "core/text.h"
#include "supernet/subnet.h"

namespace mindpipe {
namespace {

constexpr double front_width = 400, panel_left = 66, panel_right = 386, panel_height = 200;
constexpr double first_panel = 70, panel_step = 264;  // from one panel's top to the next one's

std::string in_full(const ObjectiveName& objective) {
  return objective.unit.empty() ? objective.name : fmt::format("{} ({})", objective.name, objective.unit);
}

/// Whether all of a network's objectives are numbers that have a place in a picture.
bool has_place(const ScoredNetwork& score) {
  return std::all_of(score.objectives.begin(), score.objectives.end(),
                     [](double number) { return std::isfinite(number); });
}

/// How an axis writes its numbers: divided by a power of thousand, which its name says.
struct AxisNumbers {
  double divisor = 1;
  std::string name;
};

AxisNumbers numbers_of(const ObjectiveName& objective, double largest) {
  struct Power {
    double times;
    const char *prefix, *word;
  };
  static constexpr Power powers[] = {{1e-9, "n", ""},       {1e-6, "µ", ""},        {1e-3, "m", ""},
                                     {1, "", ""},           {1e3, "k", "thousand"}, {1e6, "M", "million"},
                                     {1e9, "G", "billion"}, {1e12, "T", "trillion"}};
  const bool bare = objective.unit.empty();
  Power chosen{1, "", ""};
  for (const Power& power : powers)
    if (largest >= power.times && (power.times > 1e3 || !bare || power.times == 1)) chosen = power;
  if (chosen.times == 1e3 && largest < 1e4) chosen = powers[3];  // four digits are read as well
  if (bare)
    return {chosen.times, objective.name + (chosen.times > 1 ? fmt::format(" ({})", chosen.word) : "")};
  return {chosen.times, fmt::format("{} ({}{})", objective.name, chosen.prefix, objective.unit)};
}

/// From the lowest to the highest of numbers and a little more on both sides; never empty.
AxisRange range_around(const std::vector<double>& numbers) {
  if (numbers.empty()) return {0, 1};
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  const double length = *most - *least, tiny = 1e-9 * std::max(std::abs(*least), std::abs(*most));
  const double margin = length > tiny ? 0.05 * length : *most != 0 ? 0.1 * std::abs(*most) : 1;
  return {*least - margin, *most + margin};
}

/// One objective against the loss.
class FrontPanel {
 public:
  FrontPanel(const SearchFound& found, std::size_t objective, double top)
      : found_(found), objective_(objective) {
    std::vector<double> across, up;
    double largest = 0;
    for (const ScoredNetwork& score : found.scores)
      if (has_place(score)) {
        across.push_back(score.objectives[objective]);
        up.push_back(score.objectives[0]);
        largest = std::max(largest, std::abs(across.back()));
      }
    numbers_ = numbers_of(found.names[objective], largest);
    for (double& number : across) number /= numbers_.divisor;
    panel_ = {panel_left, top, panel_right, top + panel_height, range_around(across), range_around(up)};
  }

  std::string drawn() const {
    const ObjectiveName& loss = found_.names[0];
    std::string text = lines_across(panel_, tick_of(panel_.up.length(), 3));
    text += numbers_below(panel_, tick_of(panel_.across.length(), 3));
    text += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", panel_.left,
                        panel_.top, panel_.bottom, panel_.right);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                        (panel_.left + panel_.right) / 2, panel_.bottom + 38, escaped(numbers_.name));
    text +=
        fmt::format("<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                    (panel_.top + panel_.bottom) / 2, escaped(in_full(loss)));
    return text + points("score", all(), "M{:.1f} {:.1f}h0") + stairs() +
           points("front", found_.front, "M{:.1f} {:.1f}h0") +
           points("best", found_.best, "M{:.1f} {:.1f}m0 -7l7 7l-7 7l-7 -7z");
  }

 private:
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> numbers;
    for (std::size_t at = 0; at < found_.scores.size(); ++at) numbers.push_back(at);
    return numbers;
  }
  double x(std::size_t at) const {
    return panel_.x(found_.scores[at].objectives[objective_] / numbers_.divisor);
  }
  double y(std::size_t at) const { return panel_.y(found_.scores[at].objectives[0]); }

  std::string points(const char* name, const std::vector<std::size_t>& which, const char* mark) const {
    std::string text;
    for (const std::size_t at : which)
      if (has_place(found_.scores[at])) text += fmt::format(fmt::runtime(mark), x(at), y(at));
    return text.empty() ? text : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", name, text);
  }
  /// The edge of what the front dominates here: from one that nobody beats in both to the next.
  std::string stairs() const {
    std::vector<Objectives> pairs;
    for (const std::size_t at : found_.front)
      pairs.push_back({found_.scores[at].objectives[objective_], found_.scores[at].objectives[0]});
    std::vector<std::size_t> steps = front_of(pairs);
    std::sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) { return pairs[a] < pairs[b]; });
    std::string text;
    for (const std::size_t step : steps) {
      const std::size_t at = found_.front[step];
      text += text.empty() ? fmt::format("M{:.1f} {:.1f}", x(at), y(at))
                           : fmt::format("H{:.1f}V{:.1f}", x(at), y(at));
    }
    return text.empty() ? text : fmt::format("<path class=\"stairs\" d=\"{}\"/>\n", text);
  }

  const SearchFound& found_;
  std::size_t objective_;
  AxisNumbers numbers_;
  Panel panel_;
};

/// What the marks mean, in a line.
std::string marks_in_words(const SearchFound& found) {
  const std::size_t all = found.scores.size();
  const auto shown =
      static_cast<std::size_t>(std::count_if(found.scores.begin(), found.scores.end(), has_place));
  constexpr double y = 46, text_y = y + 4;
  return fmt::format(
      "<path class=\"score\" d=\"M{0} {3}h0\"/><text x=\"{4}\" y=\"{7}\">{8}</text>\n"
      "<path class=\"stairs\" d=\"M{1} {3}h20\"/><path class=\"front\" d=\"M{9} {3}h0\"/>"
      "<text x=\"{5}\" y=\"{7}\">front: {10}</text>\n"
      "<path class=\"best\" d=\"M{2} {3}m0 -7l7 7l-7 7l-7 -7z\"/><text x=\"{6}\" y=\"{7}\">best: "
      "{11}</text>\n",
      panel_left + 4, panel_left + 110, panel_left + 238, y, panel_left + 12, panel_left + 136,
      panel_left + 250, text_y,
      shown == all ? fmt::format("{} scored", all) : fmt::format("{} of {}", shown, all), panel_left + 120,
      found.front.size(), found.best.size());
}

/// The end of a title that is too long for a line.
std::string short_title(std::string title) {
  constexpr std::size_t most = 46;
  if (title.size() <= most) return title;
  std::size_t begin = title.size() - most;
  while (begin < title.size() && (static_cast<unsigned char>(title[begin]) & 0xC0) == 0x80) ++begin;
  return "…" + title.substr(begin);
}

/// A number that reads back to the same bits; a whole one in plain digits.
std::string in_digits(double number) {
  return number == std::floor(number) && std::abs(number) < 0x1p53 ? fmt::format("{:.0f}", number)
                                                                   : shortest(number);
}

}  // namespace

std::string front_as_csv(const SearchFound& found) {
  std::string text = "best,id";
  for (const ObjectiveName& objective : found.names) text += "," + in_full(objective);
  text += ",choice\n";
  std::vector<std::size_t> order = found.front;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const ScoredNetwork &one = found.scores[a], &other = found.scores[b];
    return std::pair(one.objectives[0], one.id) < std::pair(other.objectives[0], other.id);
  });
  for (const std::size_t at : order) {
    const ScoredNetwork& score = found.scores[at];
    const auto best = std::find(found.best.begin(), found.best.end(), at);
    text += best == found.best.end() ? "," : fmt::format("{},", best - found.best.begin() + 1);
    text += std::to_string(score.id);
    for (const double number : score.objectives) text += "," + in_digits(number);
    text += fmt::format(",\"{}\"\n", written(score.choice));
  }
  return text;
}

std::string front_as_svg(const SearchFound& found, const std::string& title) {
  MP_CHECK(found.names.size() >= 2, "a front of {} objectives", found.names.size());
  const double height = first_panel + panel_step * static_cast<double>(found.names.size() - 1) - 14;
  std::string text = svg_opening(
      front_width, height, title,
      ".axis { fill: none; stroke: #8c959f } .best { fill: none; stroke: #bc4c00; stroke-width: 2.5 }\n"
      "  .score { stroke: #c3c9d0; stroke-width: 4; stroke-linecap: round }\n"
      "  .stairs { fill: none; stroke: #0550ae; stroke-width: 1.5 }\n"
      "  .front { stroke: #0550ae; stroke-width: 6.5; stroke-linecap: round }",
      ".score { stroke: #444c56 } .stairs, .front { stroke: #79c0ff } .best { stroke: #f0883e }");
  text += fmt::format("<text class=\"title\" x=\"14\" y=\"24\">{}</text>\n", escaped(short_title(title)));
  text += marks_in_words(found);
  for (std::size_t objective = 1; objective < found.names.size(); ++objective)
    text +=
        FrontPanel(found, objective, first_panel + panel_step * static_cast<double>(objective - 1)).drawn();
  return text + "</svg>\n";
}

}  // namespace mindpipe
