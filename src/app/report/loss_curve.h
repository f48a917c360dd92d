#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// The losses of a run, as its metrics.jsonl tells them.
struct LossCurve {
  struct Point {
    std::int64_t step;
    double loss;
  };
  std::vector<Point> training, validation;
  double seconds = 0;  ///< computing time of all steps
};

/// Reads the losses of a run directory; fails with a sentence where it has no step. A line that a crash cut
/// short and losses that are no numbers are passed over.
LossCurve read_losses(const std::string& run_directory);

/// At most `most` points: the mean loss of as many intervals of equal length, at the last step of each.
std::vector<LossCurve::Point> means_of_intervals(const std::vector<LossCurve::Point>& points, int most);

/// The training loss as columns of block characters, or of ASCII, with the losses of its top and bottom at
/// the left and the steps below; a line of its own for the validation.
std::string drawn_as_text(const LossCurve& curve, int columns, int rows, bool utf8);

/// Training and validation losses as an SVG picture, for light and dark pages.
std::string drawn_as_svg(const LossCurve& curve, const std::string& title);

}  // namespace mindpipe
