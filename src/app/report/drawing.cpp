#include "app/report/drawing.h"

#include <fmt/core.h>

#include <cmath>

namespace mindpipe {
namespace {

/// The ticks of a range; counted, since a sum of ticks drifts and may stand still.
std::vector<double> ticks_of(const AxisRange& range, double tick) {
  std::vector<double> ticks;
  const double slack = 1e-9 * range.length();
  for (double number = std::ceil((range.least - slack) / tick); number * tick <= range.most + slack;
       number += 1)
    ticks.push_back(number * tick + 0.0);  // no -0
  return ticks;
}

}  // namespace

double tick_of(double length, int least) {
  const double power = std::pow(10, std::floor(std::log10(length / least)));
  const double times = length / least / power;
  return power * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

std::string tick_label(double number, double tick) {
  if (std::abs(number) >= 1e9 || tick < 1e-9) return fmt::format("{:.4g}", number);
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(tick) + 1e-9)));
  return fmt::format("{:.{}f}", number, decimals);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else out += c;
  return out;
}

std::string svg_opening(double width, double height, const std::string& title, const std::string& light,
                        const std::string& dark) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n"
      "<title>{2}</title>\n"
      "<style>\n"
      "  text {{ font: 13px sans-serif; fill: #57606a }} .title {{ font-size: 15px; fill: #24292f }}\n"
      "  .page {{ fill: #ffffff }} .grid {{ stroke: #d8dee4 }}\n"
      "  {3}\n"
      "  @media (prefers-color-scheme: dark) {{\n"
      "    text {{ fill: #8b949e }} .title {{ fill: #e6edf3 }} .page {{ fill: #0d1117 }}\n"
      "    .grid {{ stroke: #30363d }} {4}\n"
      "  }}\n"
      "</style>\n"
      "<rect class=\"page\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
      width, height, escaped(title), light, dark);
}

std::string lines_across(const Panel& panel, double tick) {
  std::string text;
  for (const double number : ticks_of(panel.up, tick)) {
    const double y = panel.y(number);
    text += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", panel.left, y, panel.right);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", panel.left - 8,
                        y + 4, tick_label(number, tick));
  }
  return text;
}

std::string numbers_below(const Panel& panel, double tick) {
  std::string text;
  for (const double number : ticks_of(panel.across, tick)) {
    const double x = panel.x(number);
    text += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v5\"/>\n", x, panel.bottom);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                        panel.bottom + 20, tick_label(number, tick));
  }
  return text;
}

}  // namespace mindpipe
