#pragma once
#include "cpu/simd/attention_tile.h"

/// The softmax of score tiles [keys][queries], down the rows, a column of sixteen queries at a time.
namespace mindpipe::MINDPIPE_ISA::tile {

/// 2^x: exactly 1 at 0, exactly 0 below -126, so that no denormal slows the products; NaN stays NaN; huge
/// from 127 on. 2^r for |r| <= 1/2 is the polynomial of degree 5 with the smallest relative error, 9.2e-8.
MINDPIPE_INLINE Vector power_of_2(Vector x) {
  const Mask none = less(x, broadcast(-126.0f));
#if MINDPIPE_ISA_LEVEL == 2
  const Vector n{{_mm512_roundscale_ps(x.part[0], 0)}};
#else
  x = min(broadcast(127.0f), x);
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

/// What a maximum begins with; a row whose maximum is still this saw no key.
constexpr float lowest = -1e30f;

/// What sixteen queries see: all of them the keys below `whole`, some those from there to `end`, none the
/// rest.
struct Column {
  int whole, end;
};
MINDPIPE_INLINE Column column_of(const Extent& extent, int first) {
  return {seen_by(extent, first), seen_by(extent, first + lanes - 1)};
}
/// The lanes whose query does not see key j.
MINDPIPE_INLINE Mask blind(const Extent& extent, int first, int j) {
  return first_lanes(j - first - extent.diagonal + 1);
}

/// One step of the online softmax with c = scale log2(e): m' = max(m, column of s), correction = 2^(c m - c
/// m'), p = 2^(c s - c m'), sum = sum correction + column of p; then p times the dropout factors, which the
/// sum does not see. p takes the place of s.
inline void softmax_step(const Extent& extent, float c, const float* dropout, float* s, float* maximum,
                         float* sum, float* correction) {
  const int padded = round_up(extent.rows, block_rows);
  for (int first = 0; first < extent.columns; first += lanes) {
    const Column column = column_of(extent, first);
    float* at = s + first;
    const Vector before = load(maximum + first);
    Vector highest[4] = {before, before, before, before};
    int j = 0;
    for (; j + 4 <= column.whole; j += 4)
      for (int u = 0; u < 4; ++u) highest[u] = max(load(at + (j + u) * queries), highest[u]);
    for (; j < column.whole; ++j) highest[0] = max(load(at + j * queries), highest[0]);
    for (; j < column.end; ++j)
      highest[0] =
          max(select(blind(extent, first, j), broadcast(lowest), load(at + j * queries)), highest[0]);
    const Vector after = max(max(highest[0], highest[1]), max(highest[2], highest[3]));

    const Vector factor = broadcast(c), offset = negate(after * factor);
    const Vector shrink = power_of_2((before - after) * factor);
    Vector total = zero();
    for (j = 0; j < column.end; ++j) {
      Vector p = power_of_2(multiply_add(load(at + j * queries), factor, offset));
      if (j >= column.whole) p = select(blind(extent, first, j), zero(), p);
      total = total + p;
      if (dropout != nullptr) p = p * load(dropout + j * queries + first);
      store(at + j * queries, p);
    }
    for (; j < padded; ++j) store(at + j * queries, zero());
    store(maximum + first, after);
    store(correction + first, shrink);
    store(sum + first, multiply_add(load(sum + first), shrink, total));
  }
}

/// p = 2^(c s - log2 of sum), ds = p (dp D - delta) into dp, p D into s: D are the dropout factors, or 1
inline void softmax_backward(const Extent& extent, float c, const float* dropout, const float* log2_sum,
                             const float* delta, float* s, float* dp) {
  const int padded = round_up(extent.rows, block_rows);
  for (int first = 0; first < extent.columns; first += lanes) {
    const Column column = column_of(extent, first);
    float *at = s + first, *gradient = dp + first;
    const Vector factor = broadcast(c), offset = negate(load(log2_sum + first)), mean = load(delta + first);
    int j = 0;
    for (; j < column.end; ++j) {
      Vector p = power_of_2(multiply_add(load(at + j * queries), factor, offset)),
             d = load(gradient + j * queries);
      if (j >= column.whole) p = select(blind(extent, first, j), zero(), p);
      Vector kept = p;
      if (dropout != nullptr) {
        const Vector keep = load(dropout + j * queries + first);
        d = d * keep;
        kept = p * keep;
      }
      d = p * (d - mean);
      if (j >= column.whole) d = select(blind(extent, first, j), zero(), d);
      store(at + j * queries, kept);
      store(gradient + j * queries, d);
    }
    for (; j < padded; ++j) {
      store(at + j * queries, zero());
      store(gradient + j * queries, zero());
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
