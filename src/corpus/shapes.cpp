#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/portable_math.h"
#include "core/random.h"
#include "corpus/pictures.h"

namespace mindpipe {
namespace {

/// Whether a point belongs to a shape of about the radius 1 around the origin.
bool is_in(int shape, double x, double y) {
  const double distance = std::sqrt(x * x + y * y), ax = std::abs(x), ay = std::abs(y);
  switch (shape) {
    case 0:
      return distance < 1;  // a circle
    case 1:
      return std::max(ax, ay) < 0.85;  // a square
    case 2:
      return y > -0.6 && y < 1.1 - 1.8 * ax;  // a triangle
    case 3:
      return (ax < 0.28 && ay < 1) || (ay < 0.28 && ax < 1);  // a cross
    case 4:
      return distance < 1 && distance > 0.6;  // a ring
    default:
      return ax < 0.3 && ay < 1.15;  // a bar
  }
}

}  // namespace

Shapes::Shapes(std::uint64_t seed, Subset subset, std::int64_t channels)
    : seed_(seed), subset_(subset), channels_(channels) {}

std::int32_t Shapes::label(std::int64_t index, std::int64_t classes) const {
  MP_REQUIRE(classes >= shapes, Exit::bad_configuration,
             "model.classes is {} (synthetic:shapes has {}); set it to {}", classes, shapes, shapes);
  return static_cast<std::int32_t>(index % shapes);
}

void Shapes::read(std::int64_t index, std::uint8_t* pixels) const {
  const RandomStream stream{
      seed_, purpose_of(subset_ == Subset::train ? "corpus.shapes.train" : "corpus.shapes.validation"),
      static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(index)};
  const auto between = [&](std::uint64_t element, double low, double high) {
    return low + (high - low) * stream.uniform(element);
  };
  const double radius = between(0, 6, 11), turn = between(1, 0, 2 * M_PI), centre_x = between(2, 11, 21),
               centre_y = between(3, 11, 21), cosine = portable::cos(turn) / radius,
               sine = portable::sin(turn) / radius;
  const auto shape = static_cast<int>(index % shapes);
  std::uint64_t element = 4;
  std::array<double, 8> back{}, front{};
  MP_CHECK(channels_ <= static_cast<std::int64_t>(back.size()), "{} channels", channels_);
  for (std::int64_t c = 0; c < channels_; ++c) {  // light on dark or dark on light, in every channel
    back[c] = between(element++, 0, 255);
    const double step = between(element++, 90, 160);
    front[c] = back[c] < 128 ? back[c] + step : back[c] - step;
  }
  for (std::int64_t c = 0; c < channels_; ++c)
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const double dx = x - centre_x, dy = y - centre_y;
        const bool inside = is_in(shape, cosine * dx + sine * dy, cosine * dy - sine * dx);
        const double noise = between(element++, -24, 24);
        *pixels++ = static_cast<std::uint8_t>(std::clamp((inside ? front : back)[c] + noise, 0.0, 255.0));
      }
}

}  // namespace mindpipe
