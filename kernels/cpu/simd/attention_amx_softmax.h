#pragma once
#include "cpu/simd/attention_amx_pack.h"

/// Probabilities of 32 keys by 32 queries and the gradients of their scores, which lie as [keys][queries]:
/// computed in f32, a row of queries in two vectors, and rounded to bf16 once, as factors in tiles.
namespace mindpipe::MINDPIPE_ISA::amx {

using tile::lowest;

/// How many keys each of 32 queries sees; all of them `whole`, none more than `most`.
struct Limits {
  __m512i of[2];
  std::int64_t whole, most;
};
inline Limits limits_of(const AttentionCall& call, std::int64_t first_query, int columns,
                        std::int64_t length) {
  alignas(64) std::int32_t of[side];
  for (int i = 0; i < side; ++i)
    of[i] =
        static_cast<std::int32_t>(visible_to(call, first_query + (i < columns ? i : columns - 1), length));
  return {{_mm512_load_si512(of), _mm512_load_si512(of + lanes)}, of[0], of[side - 1]};
}
/// The lanes of vector h whose queries see this key.
MINDPIPE_INLINE __mmask16 seeing(const Limits& limits, int h, std::int64_t key) {
  return _mm512_cmpgt_epi32_mask(limits.of[h], _mm512_set1_epi32(static_cast<int>(key)));
}
MINDPIPE_INLINE Vector kept(__mmask16 mask, Vector a) { return {{_mm512_maskz_mov_ps(mask, a.part[0])}}; }

/// Two vectors rounded to bf16, in order; denormal numbers become zero, as they do in products of tiles.
template <class Unit>
MINDPIPE_INLINE __m512i halves_of(Vector low, Vector high) {
  alignas(64) bf16 to[2 * lanes];
  store(to, products::flushed(low));
  store(to + lanes, products::flushed(high));
  return _mm512_load_si512(to);
}
/// Rounds by an instruction that every processor with tiles has (AVX512_BF16).
template <>
MINDPIPE_INLINE __m512i halves_of<products::ProcessorTiles>(Vector low, Vector high) {
  return products::PairInstruction::halves(low, high);
}

/// The first `count` of them.
MINDPIPE_INLINE void store_halves(bf16* to, __m512i halves, int count) {
  if (count >= side) _mm512_storeu_si512(to, halves);
  else _mm512_mask_storeu_epi16(to, (1u << count) - 1, halves);
}

/// Two rows of 32 queries as pairs of rows by queries, a row of two tiles: column 4 l + i of tile h is query
/// 8 l + 4 h + i.
MINDPIPE_INLINE void store_pairs(__m512i row, __m512i next, float* to) {
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(row, next));
  _mm512_storeu_si512(to + tile_floats, _mm512_unpackhi_epi16(row, next));
}
/// The query in column i of tile h.
constexpr int query_of_column(int i, int h) { return i / 4 * 8 + h * 4 + i % 4; }
/// A number of each query in the order of those columns.
MINDPIPE_INLINE void to_columns(const Vector (&queries)[2], Vector (&columns)[2]) {
  columns[0].part[0] = _mm512_shuffle_f32x4(queries[0].part[0], queries[1].part[0], 0x88);
  columns[1].part[0] = _mm512_shuffle_f32x4(queries[0].part[0], queries[1].part[0], 0xdd);
}
/// Sums that lie as [width][32 columns] into rows of a head, times a factor of the column.
template <class Unit>
void unpack_columns(const float* from, const Vector (&factors)[2], int rows, int width, bf16* to,
                    std::int64_t stride) {
  const auto turned = [&](int h, int strip, Vector(&row)[lanes]) {
    for (int i = 0; i < lanes; ++i) row[i] = load(from + (strip * half + i) * side + h * lanes) * factors[h];
    transpose(row);
  };
  for (int first = 0; first < width; first += side, from += square)
    for (int h = 0; h < 2; ++h) {
      Vector low[lanes], high[lanes];
      turned(h, 0, low);
      if (width - first > half) turned(h, 1, high);
      for (int i = 0; i < lanes; ++i) {
        const int query = query_of_column(i, h);
        if (query >= rows) continue;
        store_halves(to + query * stride + first,
                     halves_of<Unit>(low[i], width - first > half ? high[i] : zero()), width - first);
      }
    }
}

/// What the softmax of 32 queries knows of the keys so far.
struct Softmax {
  Vector maximum[2], sum[2], correction[2];
};

/// Takes the maximum over `count` keys from first_key on as well.
inline void raise_maximum(const Limits& limits, std::int64_t first_key, int count, const float* s,
                          Vector factor, Softmax& softmax) {
  for (int h = 0; h < 2; ++h) {
    const Vector before = softmax.maximum[h];
    Vector highest[4] = {before, before, before, before};
    const float* at = s + h * lanes;
    const std::int64_t all = limits.whole - first_key;
    int j = 0;
    for (; j + 4 <= count && j + 4 <= all; j += 4)
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) highest[u] = max(load(at + (j + u) * side), highest[u]);
    for (; j < count; ++j)
      highest[0].part[0] = _mm512_mask_mov_ps(highest[0].part[0], seeing(limits, h, first_key + j),
                                              max(load(at + j * side), highest[0]).part[0]);
    const Vector after = max(max(highest[0], highest[1]), max(highest[2], highest[3]));
    softmax.correction[h] = power_of_2((before - after) * factor);
    softmax.maximum[h] = after;
  }
}

/// p = 2^(c s - c maximum) for 32 keys, rounded; total += p, before rounding and without the dropout factors.
template <class Unit, bool masked, bool dropped>
void soften(const Limits& limits, std::int64_t first_key, const float* s, Vector factor,
            const Vector (&offset)[2], const float* dropout, Vector (&total)[2], float* p) {
  Vector t0 = total[0], t1 = total[1];
  for (int j = 0; j < side; j += 2, p += lanes) {
    __m512i row[2];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      Vector x[2];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        x[h] = power_of_2(multiply_add(load(s + (j + r) * side + h * lanes), factor, offset[h]));
        if constexpr (masked) x[h] = kept(seeing(limits, h, first_key + j + r), x[h]);
      }
      t0 = t0 + x[0];
      t1 = t1 + x[1];
      if constexpr (dropped)
        for (int h = 0; h < 2; ++h) {
          x[h] = x[h] * load(dropout + (j + r) * side + h * lanes);
          if constexpr (masked) x[h] = kept(seeing(limits, h, first_key + j + r), x[h]);
        }
      row[r] = halves_of<Unit>(x[0], x[1]);
    }
    store_pairs(row[0], row[1], p);
  }
  total[0] = t0;
  total[1] = t1;
}

/// p = 2^(c s - log2 of sum), ds = p (dp D - delta) of 32 keys by 32 queries, rounded: p D and ds by rows, in
/// two tiles `lower` floats apart, ds by pairs of rows as well.
template <class Unit, bool masked, bool dropped>
void soften_backward(const Limits& limits, std::int64_t first_key, const float* s, const float* dp,
                     Vector factor, const float* log2_sum, const float* delta, const float* dropout,
                     std::int64_t lower, float* p, float* ds, float* ds_across) {
  const Vector offset[2] = {negate(load(log2_sum)), negate(load(log2_sum + lanes))},
               mean[2] = {load(delta), load(delta + lanes)};
  for (int j = 0; j < side; j += 2, ds_across += lanes) {
    __m512i gradient[2];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      Vector x[2], d[2];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const int at = (j + r) * side + h * lanes;
        x[h] = power_of_2(multiply_add(load(s + at), factor, offset[h]));
        d[h] = load(dp + at);
        if constexpr (dropped) d[h] = d[h] * load(dropout + at);
        d[h] = x[h] * (d[h] - mean[h]);
        if constexpr (dropped) x[h] = x[h] * load(dropout + at);
        if constexpr (masked) {
          const __mmask16 seen = seeing(limits, h, first_key + j + r);
          x[h] = kept(seen, x[h]);
          d[h] = kept(seen, d[h]);
        }
      }
      const std::int64_t row = (j + r) / half * lower + (j + r) % half * lanes;
      gradient[r] = halves_of<Unit>(d[0], d[1]);
      _mm512_storeu_si512(p + row, halves_of<Unit>(x[0], x[1]));
      _mm512_storeu_si512(ds + row, gradient[r]);
    }
    store_pairs(gradient[0], gradient[1], ds_across);
  }
}

/// Draws the dropout factors of 32 keys by 32 queries, also of queries behind the last: what multiplies their
/// zeros has to be a number.
inline void draw(const AttentionCall& call, const Limits& limits, std::int64_t sample, std::int64_t head,
                 std::int64_t first_query, std::int64_t first_key, float* factors) {
  const std::int64_t diagonal = call.causal ? first_query + call.keys - call.queries + 1 - first_key : side;
  tile::Extent extent;
  extent.rows = at_most_side(limits.most - first_key);
  extent.columns = side;
  extent.diagonal = diagonal > side ? side : diagonal < -side ? -side : static_cast<int>(diagonal);
  tile::draw_factors<side>(call, extent, sample, head, first_query, first_key, factors);
}

}  // namespace mindpipe::MINDPIPE_ISA::amx
