#pragma once
#include "cpu/simd/vector.h"

/// exp, log and erf of sixteen floats, within 2 units in the last place; NaN stays NaN.
namespace mindpipe::MINDPIPE_ISA {

namespace detail {
constexpr float log2_of_e = 1.44269504f;
constexpr float log_of_2_high = 0.693359375f;  // few bits, so that an integer times it is exact
constexpr float log_of_2_low = -2.12194440e-4f;

/// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2: its Taylor series
MINDPIPE_INLINE Vector exp_tail(Vector r) {
  Vector p = broadcast(1.0f / 5040);
  p = multiply_add(p, r, broadcast(1.0f / 720));
  p = multiply_add(p, r, broadcast(1.0f / 120));
  p = multiply_add(p, r, broadcast(1.0f / 24));
  p = multiply_add(p, r, broadcast(1.0f / 6));
  return multiply_add(p, r, broadcast(0.5f));
}
/// 2^n for -126 <= n <= 127
MINDPIPE_INLINE Vector power_of_2(Integers n) {
  return floats_of_bits(shift_left<23>(n + broadcast_integer(127)));
}
/// x = n log(2) + r
MINDPIPE_INLINE Vector reduce(Vector x, Integers& n) {
  n = to_integers(x * broadcast(log2_of_e));
  const Vector whole = to_floats(n);
  return multiply_add(whole, broadcast(-log_of_2_low), multiply_add(whole, broadcast(-log_of_2_high), x));
}
}  // namespace detail

/// exp(x) = 2^n exp(r); infinity above 88.72, denormals and 0 below -87.3
MINDPIPE_INLINE Vector exp(Vector x) {
  x = max(broadcast(-105.0f), min(broadcast(89.0f), x));
  Integers n;
  const Vector r = detail::reduce(x, n);
  const Vector p = multiply_add(detail::exp_tail(r), r * r, r) + broadcast(1.0f);
  const Integers half = shift_right_signed<1>(n);  // in two steps: n may be 128 or below -126
  return p * detail::power_of_2(half) * detail::power_of_2(n - half);
}

/// log(x) = e log(2) + log(m) with sqrt(1/2) <= m < sqrt(2), log(m) by the series of atanh(s), s = (m - 1) /
/// (m + 1)
MINDPIPE_INLINE Vector log(Vector x) {
  const Mask tiny = less(x, broadcast(1.17549435e-38f));
  const Vector scaled = select(tiny, x * broadcast(8388608.0f), x);
  const Integers bits = bits_of(scaled);
  const Integers shifted = bits - broadcast_integer(0x3f3504f3);  // bits of sqrt(1/2)
  const Integers exponent = shift_right_signed<23>(shifted);
  const Vector m = floats_of_bits((shifted & broadcast_integer(0x7fffff)) + broadcast_integer(0x3f3504f3));
  const Vector e = to_floats(exponent) - select(tiny, broadcast(23.0f), zero());
  const Vector f = m - broadcast(1.0f), s = f / (m + broadcast(1.0f)), z = s * s;
  Vector p = broadcast(2.0f / 9);
  p = multiply_add(p, z, broadcast(2.0f / 7));
  p = multiply_add(p, z, broadcast(2.0f / 5));
  p = multiply_add(p, z, broadcast(2.0f / 3)) * z;
  const Vector low = multiply_add(e, broadcast(detail::log_of_2_low), negate(s * (f - p)));
  Vector r = multiply_add(e, broadcast(detail::log_of_2_high), f + low);
  const Vector infinity = floats_of_bits(broadcast_integer(0x7f800000));
  r = select(equal(x, infinity), x, r);
  r = select(equal(x, zero()), negate(infinity), r);
  return select(less(x, zero()), floats_of_bits(broadcast_integer(0x7fc00000)),
                select(not_a_number(x), x, r));
}

namespace detail {
/// erf(x) / x - 1 for |x| <= 0.9277, a polynomial in x^2
MINDPIPE_INLINE Vector erf_near_zero(Vector square) {
  Vector p = broadcast(-0x1.38e000p-11f);
  p = multiply_add(p, square, broadcast(0x1.471a58p-8f));
  p = multiply_add(p, square, broadcast(-0x1.b691b2p-6f));
  p = multiply_add(p, square, broadcast(0x1.ce1c44p-4f));
  p = multiply_add(p, square, broadcast(-0x1.812700p-2f));
  return multiply_add(p, square, broadcast(0x1.06eba8p-3f));
}
/// log(1 - erf(t)) for t > 0.9277
MINDPIPE_INLINE Vector log_of_erf_complement(Vector t, Vector square) {
  Vector p = multiply_add(broadcast(-0x1.220000p-16f), t, broadcast(0x1.91cfb2p-12f));
  const Vector low = multiply_add(broadcast(-0x1.fd1438p-9f), t, broadcast(0x1.8d6342p-6f));
  p = multiply_add(p, square, low);
  p = multiply_add(p, t, broadcast(-0x1.b55cb8p-4f));
  p = multiply_add(p, t, broadcast(-0x1.450aa0p-1f));
  p = multiply_add(p, t, broadcast(-0x1.079d0cp-3f));
  return multiply_add(p, t, negate(t));
}
}  // namespace detail

/// What erf(x) is near zero, x + x p(x^2), and beyond, 1 - tail with the sign of x.
struct ErfParts {
  Vector near, tail;
  Mask beyond;
};
MINDPIPE_INLINE ErfParts erf_parts(Vector x) {
  const Vector t = floats_of_bits(bits_of(x) & broadcast_integer(INT32_MAX)), square = x * x;
  return {multiply_add(detail::erf_near_zero(square), x, x), exp(detail::log_of_erf_complement(t, square)),
          greater(t, broadcast(0.927734375f))};
}
MINDPIPE_INLINE Vector erf(Vector x) {
  const ErfParts parts = erf_parts(x);
  const Vector far = broadcast(1.0f) - parts.tail;
  const Integers sign = bits_of(x) & broadcast_integer(INT32_MIN);
  return select(parts.beyond, floats_of_bits(bits_of(far) | sign), parts.near);
}
/// (1 + erf(x / sqrt(2))) / 2, the share of a normal distribution below x; a small one is the tail itself and
/// not what is left of 1 (to 1e-4 of itself from -6 on)
MINDPIPE_INLINE Vector normal_share(Vector x) {
  const ErfParts parts = erf_parts(broadcast(0.707106781f) * x);
  const Vector half = broadcast(0.5f), tail = half * parts.tail;
  const Vector far = select(less(x, zero()), tail, broadcast(1.0f) - tail);
  return select(parts.beyond, far, multiply_add(half, parts.near, half));
}

}  // namespace mindpipe::MINDPIPE_ISA
