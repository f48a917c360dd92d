#pragma once
#include "cpu/simd/attention_tile.h"
#include "cpu/simd/math.h"

/// The softmax of score tiles [keys][queries], down the rows, a column of sixteen queries at a time.
namespace mindpipe::MINDPIPE_ISA::tile {

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
/// sum does not see, becomes a factor of products over keys, in the place of s.
template <class Words>
void softmax_step(const Extent& extent, float c, const float* dropout, float* s, float* maximum, float* sum,
                  float* correction) {
  const int padded = round_up(extent.rows, block_rows);
  for (int first = 0; first < extent.columns; first += lanes) {
    const Column column = column_of(extent, first);
    const float* at = s + first;
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
    const auto soften = [&](int key) __attribute__((always_inline)) {
      if (key >= column.end) return zero();
      Vector p = power_of_2(multiply_add(load(at + key * queries), factor, offset));
      if (key >= column.whole) p = select(blind(extent, first, key), zero(), p);
      total = total + p;
      return dropout == nullptr ? p : p * load(dropout + key * queries + first);
    };
    for (j = 0; j < column.end; j += Words::depths) {
      Vector p[Words::depths];
      for (int r = 0; r < Words::depths; ++r) p[r] = soften(j + r);
      Words::put_down(p, s, j, first);
    }
    constexpr Vector none[Words::depths] = {};
    for (; j < padded; j += Words::depths) Words::put_down(none, s, j, first);
    store(maximum + first, after);
    store(correction + first, shrink);
    store(sum + first, multiply_add(load(sum + first), shrink, total));
  }
}

/// Factors that softmax_backward makes. Where words are single numbers they take the places of the scores and
/// their gradients; else ds over keys takes that of the gradients.
struct Softened {
  float *p, *ds;  ///< factors of the products over queries
  float* ds_over_keys;
};

/// p = 2^(c s - log2 of sum), ds = p (dp D - delta), and p D: D are the dropout factors, or 1
template <class Words>
void softmax_backward(const Extent& extent, float c, const float* dropout, const float* log2_sum,
                      const float* delta, const float* s, const float* dp, const Softened& to) {
  const int padded = round_up(extent.rows, block_rows);
  for (int first = 0; first < extent.columns; first += lanes) {
    const Column column = column_of(extent, first);
    const Vector factor = broadcast(c), offset = negate(load(log2_sum + first)), mean = load(delta + first);
    const auto gradient = [&](int key, Vector& kept) __attribute__((always_inline)) {
      kept = zero();
      if (key >= column.end) return zero();
      const int at = key * queries + first;
      Vector p = power_of_2(multiply_add(load(s + at), factor, offset)), d = load(dp + at);
      if (key >= column.whole) p = select(blind(extent, first, key), zero(), p);
      kept = p;
      if (dropout != nullptr) {
        const Vector keep = load(dropout + at);
        d = d * keep;
        kept = p * keep;
      }
      d = p * (d - mean);
      return key >= column.whole ? select(blind(extent, first, key), zero(), d) : d;
    };
    for (int j = 0; j < padded; j += Words::depths) {
      Vector kept[Words::depths], ds[Words::depths];
      for (int r = 0; r < Words::depths; ++r) ds[r] = gradient(j + r, kept[r]);
      for (int r = 0; r < Words::depths; ++r) {
        Words::put_along(kept[r], to.p, j + r, first);
        if (Words::depths > 1) Words::put_along(ds[r], to.ds, j + r, first);
      }
      Words::put_down(ds, to.ds_over_keys, j, first);
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
