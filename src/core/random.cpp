#include "core/random.h"

#include <cmath>

#include "core/normal_center.h"
#include "core/portable_math.h"

namespace mindpipe {
namespace {

double open_unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

}  // namespace

float normal_of(std::uint32_t word) {
  const double u = open_unit(word), q = u - 0.5;
  if (std::abs(q) <= normal_center_edge) return static_cast<float>(normal_center(q));
  const double t = std::sqrt(-2 * portable::log(q < 0 ? u : 1 - u));
  const double top = ((((-7.784894002430293e-03 * t - 3.223964580411365e-01) * t - 2.400758277161838) * t -
                       2.549732539343734) *
                          t +
                      4.374664141464968) *
                         t +
                     2.938163982698783;
  const double bottom = (((7.784695709041462e-03 * t + 3.224671290700398e-01) * t + 2.445134137142996) * t +
                         3.754408661907416) *
                            t +
                        1;
  return static_cast<float>(q < 0 ? top / bottom : -top / bottom);
}

double RandomStream::uniform(std::uint64_t element) const { return open_unit(word(element)); }

void RandomStream::normals(std::uint64_t first, std::uint64_t count, float deviation, float* out) const {
  for (std::uint64_t i = 0; i < count;) {
    const auto four = words((first + i) / 4);
    for (std::uint64_t k = (first + i) % 4; k < 4 && i < count; ++k, ++i)
      out[i] = deviation * normal_of(four[k]);
  }
}

}  // namespace mindpipe
