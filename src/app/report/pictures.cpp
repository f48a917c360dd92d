#include "app/report/pictures.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/report/drawing.h"

namespace mindpipe::pictures {
namespace {

/// Colours that are told apart on light and on dark pages, also by those who see few.
constexpr const char* light =
    ".forward, .c0 { fill: #0969da } .backward, .c1 { fill: #bc4c00 } .weight, .c2 { fill: #e3a008 } "
    ".update, .c3 { fill: #1a7f37 } .sum, .c4 { fill: #8250df } .c5 { fill: #57606a } .c6 { fill: #a475f9 } "
    ".c7 { fill: #cf222e } .limit { stroke: #cf222e; fill: none; stroke-width: 1.5 } "
    ".joined { stroke: #0969da; stroke-opacity: 0.45; fill: none; stroke-width: 1.5 } "
    ".point { fill: #0969da; fill-opacity: 0.45 } .best { fill: #cf222e } .idle { fill: #eaeef2 }";
constexpr const char* dark =
    ".forward, .c0 { fill: #58a6ff } .backward, .c1 { fill: #f0883e } .weight, .c2 { fill: #e3b341 } "
    ".update, .c3 { fill: #3fb950 } .sum, .c4 { fill: #a475f9 } .c5 { fill: #8b949e } .idle { fill: #21262d "
    "}";

constexpr const char* page_style =
    "body { font: 15px/1.5 sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #24292f; "
    "background: #ffffff } pre { overflow-x: auto; font: 12px/1.45 monospace; padding: 1em; "
    "background: #f6f8fa; border-radius: 6px } svg { width: 100%; margin: 1em 0 } "
    "@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } "
    "pre { background: #161b22 } }";

}  // namespace

std::string opening(const std::string& title, double height) {
  return svg_opening(page_width, height, title, light, dark) +
         fmt::format("<text class=\"title\" x=\"{:.0f}\" y=\"24\">{}</text>\n", page_left, escaped(title));
}

std::string text_at(double x, double y, const std::string& text, const char* anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string box(const char* kind, double x, double y, double w, double h) {
  return fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"/>\n",
                     kind, x, y, w, h);
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& entries, double y) {
  std::string text;
  double x = page_left;
  for (const auto& [kind, word] : entries) {
    text += box(kind.c_str(), x, y - 10, 12, 12) + text_at(x + 18, y, word);
    x += 40 + 7.2 * static_cast<double>(word.size());
  }
  return text;
}

const char* class_of_action(const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
    case ActionKind::backward_input:
      return "backward";
    case ActionKind::backward_weight:
      return "weight";
    case ActionKind::update:
      return "update";
    case ActionKind::reduce:
    case ActionKind::gather:
      return "sum";
    case ActionKind::send:
    case ActionKind::receive:
    case ActionKind::sum_scalar:
    case ActionKind::fetch:
    case ActionKind::evict:
    case ActionKind::stash:
    case ActionKind::unstash:
      return nullptr;
  }
  return nullptr;
}

std::string legend_of_steps(double y) {
  return legend({{"forward", "forward"},
                 {"backward", "backward"},
                 {"weight", "weights' half"},
                 {"update", "update"},
                 {"sum", "sums over data"},
                 {"idle", "idle"}},
                y);
}

void Row::add(const char* kind, const Span& span) {
  const double begin = static_cast<double>(span.start) * each_, end = static_cast<double>(span.end) * each_;
  if (kind == kind_ && begin - end_ < 0.15 && end - begin_ < 0.6) {
    end_ = std::max(end_, end);
    return;
  }
  close();
  kind_ = kind;
  begin_ = begin;
  end_ = end;
}

std::string Row::text() {
  close();
  return text_;
}

void Row::close() {
  if (kind_ != nullptr)
    text_ += box(kind_, page_left + begin_, y_, std::max(end_ - begin_ - 0.1, 0.15), height_);
  kind_ = nullptr;
}

std::string page_opening(const std::string& title, const std::string& code) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta "
      "charset=\"utf-8\">\n<title>{0}</title>\n<style>{1}</style>\n"
      "<h1>{0}</h1>\n<p><code>{2}</code></p>\n",
      escaped(title), page_style, escaped(code));
}

std::string list_of(const std::vector<std::string>& sentences) {
  std::string items;
  for (const std::string& sentence : sentences) items += fmt::format("<li>{}</li>\n", escaped(sentence));
  return items.empty() ? "" : fmt::format("<ul>\n{}</ul>\n", items);
}

std::string page_closing(const std::string& text) { return "<pre>" + escaped(text) + "</pre>\n</html>\n"; }

}  // namespace mindpipe::pictures
