#pragma once
#include "cpu/simd/vector.h"

/// exp, log and erf of sixteen floats, within 2 units in the last place; NaN stays NaN.
namespace mindpipe::MINDPIPE_ISA {

constexpr float log2_of_e = 1.44269504f;

namespace detail {
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

/// 2^x: exactly 1 at 0, exactly 0 below -126, so that no denormal slows the products; NaN stays NaN; 2^127
/// from 127 on. 2^r for |r| <= 1/2 is the polynomial of degree 5 with the smallest relative error, 9.2e-8.
MINDPIPE_INLINE Vector power_of_2(Vector x) {
  const Mask none = less(x, broadcast(-126.0f));
  x = min(broadcast(127.0f), x);
#if MINDPIPE_ISA_LEVEL == 2
  const Vector n{{_mm512_roundscale_ps(x.part[0], 0)}};
#else
  const Integers whole = to_integers(x);
  const Vector n = to_floats(whole);
#endif
  const Vector r = x - n;
  Vector p = broadcast(0.00132647273f);
  p = multiply_add(p, r, broadcast(0.00967151299f));
  p = multiply_add(p, r, broadcast(0.0555073358f));
  p = multiply_add(p, r, broadcast(0.240222424f));
  p = multiply_add(p, r, broadcast(0.693147004f));
  p = multiply_add(p, r, broadcast(1.0f));
#if MINDPIPE_ISA_LEVEL == 2
  const __mmask16 some = static_cast<__mmask16>(~none.part[0]);
  return {{_mm512_maskz_scalef_ps(some, p.part[0], n.part[0])}};
#else
  return select(none, zero(), p * floats_of_bits(shift_left<23>(whole + broadcast_integer(127))));
#endif
}

/// exp(x) of what is not above 0, with half the work: exactly 1 at 0, exactly 0 below -87.34, and in between
/// right to 1.6e-7 (1 + |x|) of itself.
MINDPIPE_INLINE Vector exp_below_zero(Vector x) { return power_of_2(x * broadcast(log2_of_e)); }

/// 1 / (1 + exp(-u)) and what lacks to 1, each right to the last digits where it is small.
template <class V>
struct Sigmoid {
  V of, rest;
};
/// Sigmoid of u = x log(2): e = 2^-|x| is between 0 and 1, and 1 / (1 + e) is the parabola with the smallest
/// relative error, 1/99, and two steps of Newton: divisions would take longer than all of it.
MINDPIPE_INLINE Sigmoid<Vector> sigmoid_of_log2(Vector x) {
  const Vector e = power_of_2(floats_of_bits(bits_of(x) | broadcast_integer(INT32_MIN))),
               one = broadcast(1.0f);
  Vector r =
      multiply_add(multiply_add(broadcast(32.0f / 99), e, broadcast(-80.0f / 99)), e, broadcast(98.0f / 99));
  for (int step = 0; step < 2; ++step) r = multiply_add(r, multiply_add(negate(e), r, one - r), r);
  const Mask below = less(x, zero());
  const Vector small = e * r;
  return {select(below, small, r), select(below, r, small)};
}
MINDPIPE_INLINE Sigmoid<Vector> sigmoid(Vector u) { return sigmoid_of_log2(u * broadcast(log2_of_e)); }

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
