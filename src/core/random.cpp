#include "core/random.h"

#include <cmath>

namespace mindpipe {
namespace {

double open_unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

/// The normal deviate below which a share u of all lie: P. J. Acklam's rational approximation (2003), relative error below 1.2e-9.
/// One word gives one deviate, and 95 of 100 need no logarithm.
float normal_of(std::uint32_t word) {
  const double u = open_unit(word), q = u - 0.5;
  if (std::abs(q) <= 0.47575) {
    const double r = q * q;
    const double top =
        ((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r + 1.383577518672690e+02) * r -
         3.066479806614716e+01) *
            r +
        2.506628277459239;
    const double bottom =
        ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r + 6.680131188771972e+01) * r -
         1.328068155288572e+01) *
            r +
        1;
    return static_cast<float>(q * top / bottom);
  }
  const double t = std::sqrt(-2 * std::log(q < 0 ? u : 1 - u));
  const double top =
      ((((-7.784894002430293e-03 * t - 3.223964580411365e-01) * t - 2.400758277161838) * t - 2.549732539343734) * t + 4.374664141464968) *
          t +
      2.938163982698783;
  const double bottom = (((7.784695709041462e-03 * t + 3.224671290700398e-01) * t + 2.445134137142996) * t + 3.754408661907416) * t + 1;
  return static_cast<float>(q < 0 ? top / bottom : -top / bottom);
}

}  // namespace

double RandomStream::uniform(std::uint64_t element) const { return open_unit(word(element)); }

void RandomStream::normals(std::uint64_t first, std::uint64_t count, float deviation, float* out) const {
  for (std::uint64_t i = 0; i < count;) {
    const auto four = words((first + i) / 4);
    for (std::uint64_t k = (first + i) % 4; k < 4 && i < count; ++k, ++i) out[i] = deviation * normal_of(four[k]);
  }
}

}  // namespace mindpipe
