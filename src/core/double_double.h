#pragma once

namespace mindpipe {

/// An unevaluated sum of two doubles, |low| at most half a unit of high's last place: 106 bits. Operations
/// are additions and products of doubles alone, so every processor finds the same bits.
struct DoubleDouble {
  double high = 0, low = 0;
};

/// a + b, exactly, where |a| >= |b| or a is 0.
constexpr DoubleDouble exact_sum_of_ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
/// a + b, exactly (Knuth).
constexpr DoubleDouble exact_sum(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
/// The upper 26 bits of a number; the rest fits into 26 bits, too (Veltkamp).
constexpr double upper_half(double a) {
  const double shifted = 134217729.0 * a;  // 2^27 + 1
  return shifted - (shifted - a);
}
/// a b, exactly, of numbers below 2^990 whose product is above 2^-960 or 0 (Dekker).
constexpr DoubleDouble exact_product(double a, double b) {
  const double product = a * b, a_high = upper_half(a), b_high = upper_half(b), a_low = a - a_high,
               b_low = b - b_high;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

constexpr DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }
constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble highs = exact_sum(a.high, b.high), lows = exact_sum(a.low, b.low);
  const DoubleDouble sum = exact_sum_of_ordered(highs.high, highs.low + lows.high);
  return exact_sum_of_ordered(sum.high, sum.low + lows.low);
}
constexpr DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }
constexpr DoubleDouble operator*(DoubleDouble a, double b) {
  const DoubleDouble product = exact_product(a.high, b);
  return exact_sum_of_ordered(product.high, product.low + a.low * b);
}
constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = exact_product(a.high, b.high);
  return exact_sum_of_ordered(product.high, product.low + (a.high * b.low + a.low * b.high));
}
constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble rest = a - b * first;
  const double second = rest.high / b.high;
  const double third = (rest - b * second).high / b.high;
  return exact_sum_of_ordered(first, second) + DoubleDouble{third, 0};
}

}  // namespace mindpipe
