#pragma once
#include <optional>

#include "kernels/operand.h"

/// What adding gradients as whole numbers means, one number at a time and by its bits: no arithmetic of
/// floats.
namespace mindpipe::testing {

/// digits / 2^places, rounded to the nearest whole number, ties to even; digits are below 2^63.
inline std::uint64_t nearest(std::uint64_t digits, int places) {
  if (places == 0) return digits;
  if (places > 63) return 0;
  const std::uint64_t whole = digits >> places, rest = digits - (whole << places),
                      half = std::uint64_t{1} << (places - 1);
  return whole + (rest > half || (rest == half && whole % 2 == 1) ? 1 : 0);
}

/// How many units of 2^-40 a gradient adds; none where it is beyond +-1,024 or not finite.
inline std::optional<std::int64_t> units_of(float gradient) {
  const auto bits = std::bit_cast<std::uint32_t>(gradient);
  const std::uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  constexpr std::uint32_t of_most = 127 + 10;
  if (exponent > of_most || (exponent == of_most && fraction != 0)) return std::nullopt;
  const std::uint64_t digits = exponent == 0 ? fraction : fraction | 0x800000;
  const int places = 150 - 40 - static_cast<int>(std::max(exponent, 1u));
  const auto units = static_cast<std::int64_t>(places < 0 ? digits << -places : nearest(digits, places));
  return bits >> 31 != 0 ? -units : units;
}

/// The f32 nearest to so many units, ties to even.
inline float gradient_of(std::int64_t units) {
  const std::uint64_t size =
      units < 0 ? -static_cast<std::uint64_t>(units) : static_cast<std::uint64_t>(units);
  const int places = std::max(0, 64 - 24 - std::countl_zero(size));
  const float value = std::ldexp(static_cast<float>(nearest(size, places)), places - 40);
  return units < 0 ? -value : value;
}

/// What a gradient's element may be: edges of every kind, then any bits at all, then numbers whose last bits
/// are halves of a unit.
inline float any_gradient(std::int64_t i) {
  constexpr float edges[] = {0,
                             -0.0f,
                             0x1p-149f,
                             0x1.fffffcp-127f,
                             0x1p-126f,
                             0x1p-41f,
                             -0x1p-41f,
                             0x1.8p-40f,
                             0x1.4p-39f,
                             -0x1.cp-39f,
                             0x1p-40f,
                             0x1.000002p-41f,
                             0x1p10f,
                             -0x1p10f,
                             0x1.fffffep9f,
                             0x1.000002p10f,
                             -0x1.000002p10f,
                             3e38f,
                             INFINITY,
                             -INFINITY,
                             NAN};
  if (i < std::ssize(edges)) return edges[i];
  const RandomStream stream{.seed = 7, .purpose = purpose_of("any gradient")};
  const std::uint32_t word = stream.word(static_cast<std::uint64_t>(i));
  if (i % 2 == 0) return std::bit_cast<float>(word);
  const float halves = std::ldexp(static_cast<float>(word >> 8), -41);  // at most 2^24 halves
  return word % 2 == 0 ? halves : -halves;
}
inline Operand any_gradients(std::int64_t count, std::size_t skew = 0) {
  Operand made({count}, DType::f32, skew);
  for (std::int64_t i = 0; i < count; ++i) made.tensor().as<float>()[i] = any_gradient(i);
  return made;
}

/// Sums of every size up to the largest, of both signs, with ties between two f32 and their neighbours.
inline std::int64_t any_total(std::int64_t i) {
  constexpr std::int64_t most =
      IntegerGradients::contributions * IntegerGradients::most * IntegerGradients::per_one;
  constexpr std::int64_t edges[] = {0,
                                    1,
                                    -1,
                                    most,
                                    -most,
                                    (1 << 24) + 1,
                                    (1 << 24) + 3,
                                    (std::int64_t{1} << 60) + (std::int64_t{1} << 36),
                                    (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1};
  if (i < std::ssize(edges)) return edges[i];
  const RandomStream stream{.seed = 7, .purpose = purpose_of("any total")};
  const auto words = stream.words(static_cast<std::uint64_t>(i));
  const int places = static_cast<int>(words[2] % 63);
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 1;
  std::uint64_t size = bits >> places;
  if (words[3] % 2 == 0 && places < 38)  // the middle between two f32, or a unit beside it
    size = ((size >> (39 - places) << 1 | 1) << (38 - places)) + (words[3] >> 1) % 3 - 1;
  const auto units = static_cast<std::int64_t>(std::min(size, static_cast<std::uint64_t>(most)));
  return words[3] >> 31 != 0 ? -units : units;
}
inline Operand any_totals(std::int64_t count, std::size_t skew = 0) {
  Operand made({count}, DType::i64, skew);
  for (std::int64_t i = 0; i < count; ++i) made.tensor().as<std::int64_t>()[i] = any_total(i);
  return made;
}

}  // namespace mindpipe::testing
