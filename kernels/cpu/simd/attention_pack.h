#pragma once
#include "cpu/simd/attention_tile.h"

/// Rows of heads into tiles of f32 and back.
namespace mindpipe::MINDPIPE_ISA::tile {

MINDPIPE_INLINE int strips_of(std::int64_t width) { return static_cast<int>((width + lanes - 1) / lanes); }

/// Rows [0, rows) of a head into strips of `tile_rows` rows; zeros in columns beyond `width` and in rows up to `padded`.
/// Rows of a head lie far apart, beyond what the processor fetches ahead by itself.
template <int tile_rows, class T>
void pack_strips(const T* from, std::int64_t row_stride, int rows, int padded, int width, float* to) {
  constexpr int ahead = 12;
  const int whole = width / lanes * lanes;
  for (int i = 0; i < rows; ++i, from += row_stride) {
    float* at = to + i * lanes;
    int first = 0;
    for (; first < whole; first += lanes, at += tile_rows * lanes) {
      _mm_prefetch(reinterpret_cast<const char*>(from + ahead * row_stride + first), _MM_HINT_T0);
      store(at, load(from + first));
    }
    if (first < width) store(at, load(from + first, width - first));
  }
  for (int first = 0; first < width; first += lanes, to += tile_rows * lanes)
    for (int i = rows; i < padded; ++i) store(to + i * lanes, zero());
}

/// to[c][i] = from[i][c] for a square of 16; from has rows of 16, to has rows of `queries`.
MINDPIPE_INLINE void transpose_square(const float* from, float* to) {
#if MINDPIPE_ISA_LEVEL == 2
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(from + i * 16);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)  // a[i + c] holds columns c, c + 4, c + 8, c + 12 of rows i .. i + 3
    for (int c = 0; c < 2; ++c) {
      const __m512d low = _mm512_castps_pd(b[i + c]), high = _mm512_castps_pd(b[i + 2 + c]);
      a[i + 2 * c] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      a[i + 2 * c + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  for (int c = 0; c < 4; ++c) {
    const __m512 even = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x88), odd = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xdd);
    const __m512 even_below = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x88), odd_below = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xdd);
    _mm512_storeu_ps(to + c * queries, _mm512_shuffle_f32x4(even, even_below, 0x88));
    _mm512_storeu_ps(to + (c + 4) * queries, _mm512_shuffle_f32x4(odd, odd_below, 0x88));
    _mm512_storeu_ps(to + (c + 8) * queries, _mm512_shuffle_f32x4(even, even_below, 0xdd));
    _mm512_storeu_ps(to + (c + 12) * queries, _mm512_shuffle_f32x4(odd, odd_below, 0xdd));
  }
#else
  for (int c = 0; c < lanes; ++c)
    for (int i = 0; i < lanes; ++i) to[c * queries + i] = from[i * lanes + c];
#endif
}

/// Strips of queries into [width, rounded up][queries].
inline void transpose_strips(const float* from, int rows, int width, float* to) {
  for (int first = 0; first < width; first += lanes, from += queries * lanes, to += lanes * queries)
    for (int i = 0; i < rows; i += lanes) transpose_square(from + i * lanes, to + i);
}

/// Strips times `factors` of their rows (or one for all) into rows [0, rows) of a head.
template <int tile_rows, class T>
void unpack_strips(const float* from, const float* factors, bool factor_of_row, int rows, int width, T* to, std::int64_t row_stride) {
  for (int i = 0; i < rows; ++i, to += row_stride) {
    const Vector factor = broadcast(factors[factor_of_row ? i : 0]);
    const float* at = from + i * lanes;
    for (int first = 0; first < width; first += lanes, at += tile_rows * lanes) {
      const int count = width - first;
      if (count >= lanes) store(to + first, load(at) * factor);
      else store(to + first, load(at) * factor, count);
    }
  }
}

template <class T>
void clear_rows(T* to, std::int64_t row_stride, std::int64_t rows, std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) std::memset(to + i * row_stride, 0, static_cast<std::size_t>(width) * sizeof(T));
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
