#pragma once
#include "cpu/simd/attention_tile.h"
#include "cpu/simd/transpose.h"

/// Rows of heads into tiles of words and back.
namespace mindpipe::MINDPIPE_ISA::tile {

MINDPIPE_INLINE int strips_of(std::int64_t words) { return static_cast<int>((words + lanes - 1) / lanes); }

/// Floats of a tile of `tile_rows` rows whose words hold neighbouring columns, or neighbouring rows.
template <class Words>
std::int64_t floats_along(int tile_rows, std::int64_t width) {
  return static_cast<std::int64_t>(strips_of(words_of<Words>(static_cast<int>(width)))) * lanes * tile_rows;
}
template <class Words>
std::int64_t floats_down(int tile_rows, std::int64_t width) {
  return static_cast<std::int64_t>(strips_of(width)) * lanes * words_of<Words>(tile_rows);
}

constexpr int rows_ahead = 12;  ///< rows of a head lie far apart: how many ahead are fetched by hand

/// Rows [0, rows) of a head into strips of `tile_rows` rows, neighbouring columns in a word; zeros in columns
/// beyond `width` and in rows up to `padded`.
template <class Words, int tile_rows>
void pack_along(const typename Words::Value* from, std::int64_t row_stride, int rows, int padded, int width,
                float* to) {
  constexpr int strip = lanes * Words::depths;
  const int whole = width / strip * strip;
  for (int i = 0; i < rows; ++i, from += row_stride) {
    float* at = to + i * lanes;
    int first = 0;
    for (; first < whole; first += strip, at += tile_rows * lanes) {
      _mm_prefetch(reinterpret_cast<const char*>(from + rows_ahead * row_stride + first), _MM_HINT_T0);
      store(at, Words::along(from + first, strip));
    }
    if (first < width) store(at, Words::along(from + first, width - first));
  }
  for (int first = 0; first < width; first += strip, to += tile_rows * lanes)
    for (int i = rows; i < padded; ++i) store(to + i * lanes, zero());
}

/// Rows [0, rows) of a head into strips whose words hold neighbouring rows; zeros where pack_along has them.
template <class Words, int tile_rows>
void pack_down(const typename Words::Value* from, std::int64_t row_stride, int rows, int padded, int width,
               float* to) {
  constexpr int strip = words_of<Words>(tile_rows) * lanes;
  for (int i = 0; i < rows; i += Words::depths, from += Words::depths * row_stride) {
    float* at = to + i / Words::depths * lanes;
    for (int first = 0; first < width; first += lanes, at += strip)
      store(at, Words::across(from + first, row_stride, rows - i, width - first));
  }
  for (int first = 0; first < width; first += lanes, to += strip)
    for (int i = words_of<Words>(rows); i < words_of<Words>(padded); ++i) store(to + i * lanes, zero());
}

/// Strips of queries into [words of the width, rounded up][queries].
inline void transpose_strips(const float* from, int rows, int words, float* to) {
  for (int first = 0; first < words; first += lanes, from += queries * lanes, to += lanes * queries)
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
