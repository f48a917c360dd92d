#pragma once
#include <string>
#include <vector>

namespace mindpipe {

/// From the lowest to the highest number of an axis.
struct AxisRange {
  double least, most;

  double length() const { return most - least; }
};

/// A rectangle of an SVG picture in which numbers lie across and up.
struct Panel {
  double left, top, right, bottom;
  AxisRange across, up;

  double x(double number) const { return left + (number - across.least) / across.length() * (right - left); }
  double y(double number) const { return top + (up.most - number) / up.length() * (bottom - top); }
};

/// 1, 2 or 5 times a power of ten: so that there are at least `least` of them in a length, and at most two
/// and a half times as many.
double tick_of(double length, int least);

/// A number at an axis, with the digits that tell it from the next tick.
std::string tick_label(double number, double tick);

/// Text within an SVG picture.
std::string escaped(const std::string& text);

/// What an SVG picture begins with: its size, its title for readers, and how text, page and grid look on
/// light and on dark pages; `light` and `dark` are styles of more classes.
std::string svg_opening(double width, double height, const std::string& title, const std::string& light,
                        const std::string& dark);

/// Lines across a panel at the ticks of its axis up, with their numbers at the left.
std::string lines_across(const Panel& panel, double tick);
/// The numbers of the ticks below a panel.
std::string numbers_below(const Panel& panel, double tick);

}  // namespace mindpipe
