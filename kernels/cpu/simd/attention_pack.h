#pragma once
#include "cpu/simd/attention_tile.h"
#include "cpu/simd/transpose.h"

/// Rows of heads into tiles of f32 and back.
namespace mindpipe::MINDPIPE_ISA::tile {

MINDPIPE_INLINE int strips_of(std::int64_t width) { return static_cast<int>((width + lanes - 1) / lanes); }

/// Rows [0, rows) of a head into strips of `tile_rows` rows; zeros in columns beyond `width` and in rows up
/// to `padded`. Rows of a head lie far apart, beyond what the processor fetches ahead by itself.
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

/// Strips of queries into [width, rounded up][queries].
inline void transpose_strips(const float* from, int rows, int width, float* to) {
  for (int first = 0; first < width; first += lanes, from += queries * lanes, to += lanes * queries)
    for (int block = 0; block < rows; block += lanes) {
      Vector square[lanes];
      for (int i = 0; i < lanes; ++i) square[i] = load(from + (block + i) * lanes);
      transpose(square);
      for (int c = 0; c < lanes; ++c) store(to + c * queries + block, square[c]);
    }
}

/// Strips times `factors` of their rows (or one for all) into rows [0, rows) of a head.
template <int tile_rows, class T>
void unpack_strips(const float* from, const float* factors, bool factor_of_row, int rows, int width, T* to,
                   std::int64_t row_stride) {
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
  for (std::int64_t i = 0; i < rows; ++i)
    std::memset(to + i * row_stride, 0, static_cast<std::size_t>(width) * sizeof(T));
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
