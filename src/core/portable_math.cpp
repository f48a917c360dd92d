#include "core/portable_math.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check.h"
#include "core/double_double.h"

namespace mindpipe::portable {
namespace {

/// A constant of 159 bits, in three doubles.
struct Constant {
  double first, second, third;
};
constexpr Constant log_of_2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111};
constexpr Constant pi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.f1976b7ed8fbcp-109};

/// n c, of a whole number of at most 53 bits.
constexpr DoubleDouble times(double n, const Constant& c) {
  return (DoubleDouble{n * c.third} + exact_product(n, c.second)) + exact_product(n, c.first);
}
/// x - n c, to the last bits of a small rest.
constexpr DoubleDouble rest_of(DoubleDouble x, double n, const Constant& c) {
  return ((x - exact_product(n, c.first)) - exact_product(n, c.second)) - DoubleDouble{n * c.third};
}
constexpr Constant scaled(const Constant& c, double power_of_2) {
  return {c.first * power_of_2, c.second * power_of_2, c.third * power_of_2};
}
constexpr DoubleDouble one_over(int n) { return DoubleDouble{1} / DoubleDouble{static_cast<double>(n)}; }
double nearest_integer(double x) {
  return static_cast<double>(static_cast<std::int64_t>(x < 0 ? x - 0.5 : x + 0.5));
}

/// A power series in double, its highest coefficient first.
template <std::size_t terms>
double series(const std::array<double, terms>& coefficients, double x) {
  double sum = coefficients[0];
  for (std::size_t i = 1; i < terms; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// exp(x) = 2^k 2^(j / 64) exp(r), |r| <= log(2) / 128

constexpr int cuts_of_octave = 64;
constexpr Constant step_of_exp = scaled(log_of_2, 1.0 / cuts_of_octave);
/// 2^(j / 64), by the series of exp.
constexpr std::array<DoubleDouble, cuts_of_octave> powers_of_2 = [] {
  std::array<DoubleDouble, cuts_of_octave> all;
  for (int j = 0; j < cuts_of_octave; ++j) {
    const DoubleDouble x = times(j, step_of_exp);
    DoubleDouble sum{1};
    for (int n = 30; n > 0; --n) sum = DoubleDouble{1} + x * sum * one_over(n);
    all[static_cast<std::size_t>(j)] = sum;
  }
  return all;
}();

/// A number times 2^exponent.
struct Scaled {
  DoubleDouble number;
  int exponent = 0;
};
Scaled exp_of(DoubleDouble x) {
  constexpr std::array<double, 8> ending{1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                         1.0 / 5040,     1.0 / 720,     1.0 / 120,    1.0 / 24};
  constexpr DoubleDouble sixth = one_over(6);
  const double n = nearest_integer(x.high * (cuts_of_octave / log_of_2.first));
  const DoubleDouble r = rest_of(x, n, step_of_exp);
  const DoubleDouble tail = DoubleDouble{0.5} + r * (sixth + r * series(ending, r.high));
  const auto whole = static_cast<int>(n);
  const int j = whole & (cuts_of_octave - 1);
  const DoubleDouble power = powers_of_2[static_cast<std::size_t>(j)];
  return {power + power * (r + r * r * tail), (whole - j) / cuts_of_octave};
}
double rounded(const Scaled& x) { return std::ldexp(x.number.high, x.exponent); }

// log(2^e m) = e log(2) + 2 atanh(s), s = (m - 1) / (m + 1), sqrt(1/2) <= m < sqrt(2)

DoubleDouble log_of(double x) {
  constexpr std::array<double, 12> ending{1.0 / 35, 1.0 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25,
                                          1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13};
  constexpr std::array<DoubleDouble, 5> beginning{one_over(11), one_over(9), one_over(7), one_over(5),
                                                  one_over(3)};
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < M_SQRT1_2) {
    m *= 2;
    --exponent;
  }
  const DoubleDouble s = DoubleDouble{m - 1} / exact_sum(m, 1), square = s * s;
  DoubleDouble sum = DoubleDouble{series(ending, square.high)};
  for (const DoubleDouble& coefficient : beginning) sum = coefficient + square * sum;
  const DoubleDouble of_m = s + s * square * sum;
  return times(exponent, log_of_2) + of_m * 2.0;
}

// Angles are n pi / 128 + r, |r| <= pi / 256.

constexpr int cuts_of_quarter = 64;
constexpr Constant step_of_angle = scaled(pi, 0.5 / cuts_of_quarter);
/// Sines of j pi / 128, j <= 64, by their series.
constexpr std::array<DoubleDouble, cuts_of_quarter + 1> sines = [] {
  std::array<DoubleDouble, cuts_of_quarter + 1> all;
  for (int j = 0; j <= cuts_of_quarter; ++j) {
    const DoubleDouble x = times(j, step_of_angle), square = x * x;
    DoubleDouble sum{1};
    for (int n = 30; n > 0; n -= 2) sum = DoubleDouble{1} - square * sum * one_over(n * (n + 1));
    all[static_cast<std::size_t>(j)] = x * sum;
  }
  return all;
}();

/// Sine, and cosine minus 1, of a small angle.
struct Small {
  DoubleDouble sine, cosine_less_1;
};
Small small_angle(DoubleDouble r) {
  constexpr std::array<double, 4> of_sine{-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120};
  constexpr std::array<double, 5> of_cosine{1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720,
                                            1.0 / 24};
  constexpr DoubleDouble sixth = one_over(6);
  const DoubleDouble square = r * r;
  const DoubleDouble sine = square * series(of_sine, square.high) - sixth;
  const DoubleDouble cosine = square * series(of_cosine, square.high) - DoubleDouble{0.5};
  return {r + r * square * sine, square * cosine};
}

}  // namespace

double exp(double x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(x > -746)) return x != x ? x : 0;
  return x > 710 ? infinity : rounded(exp_of({x}));
}

double log(double x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (x == 0) return -infinity;
  if (!(x > 0)) return std::numeric_limits<double>::quiet_NaN();
  return x == infinity ? x : log_of(x).high;
}

double pow(double x, double y) {
  MP_CHECK(x >= 0 && y - y == 0, "portable::pow: {} to the power {}", x, y);
  if (y == 0 || x == 1) return 1;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (x == 0 || x == infinity) return (x == 0) == (y > 0) ? 0 : infinity;
  const DoubleDouble of_x = log_of(x);
  const double about = y * of_x.high;
  if (about < -746) return 0;
  return about > 710 ? infinity : rounded(exp_of(of_x * y));
}

SineCosine sine_cosine(double angle) {
  const double turned = std::abs(angle);
  if (!(turned <= std::numeric_limits<double>::max())) return {angle - angle, angle - angle};
  MP_CHECK(turned <= 0x1p40, "portable::sine_cosine: an angle of {}", angle);
  const double n = nearest_integer(turned * (2 * cuts_of_quarter / pi.first));
  const Small small = small_angle(rest_of({turned}, n, step_of_angle));
  const auto whole = static_cast<std::int64_t>(n);
  const auto j = static_cast<std::size_t>(whole & (cuts_of_quarter - 1));
  const DoubleDouble s = sines[j], c = sines[cuts_of_quarter - j];
  const double sine = (s + (c * small.sine + s * small.cosine_less_1)).high,
               cosine = (c + (c * small.cosine_less_1 - s * small.sine)).high;
  const double sign = angle < 0 ? -1 : 1;
  switch (whole / cuts_of_quarter % 4) {
    case 0:
      return {angle == 0 ? angle : sign * sine, cosine};
    case 1:
      return {sign * cosine, -sine};
    case 2:
      return {sign * -sine, -cosine};
    default:
      return {sign * -cosine, sine};
  }
}

double sin(double angle) { return sine_cosine(angle).sine; }
double cos(double angle) { return sine_cosine(angle).cosine; }

}  // namespace mindpipe::portable
