#pragma once

namespace mindpipe {

/// The middle of the normal distribution's inverse: P. J. Acklam's rational approximation (2003), relative
/// error below 1.2e-9. Always inlined: kernels of one instruction set use it, and no copy may serve others.
constexpr double normal_center_edge = 0.47575;
inline __attribute__((always_inline)) double normal_center(double q) {
  const double r = q * q;
  const double top =
      ((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r +
        1.383577518672690e+02) *
           r -
       3.066479806614716e+01) *
          r +
      2.506628277459239;
  const double bottom =
      ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r +
        6.680131188771972e+01) *
           r -
       1.328068155288572e+01) *
          r +
      1;
  return q * top / bottom;
}

}  // namespace mindpipe
