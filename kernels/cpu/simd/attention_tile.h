#pragma once
#include "cpu/simd/attention_words.h"

/// Products of tiles by register blocks. Layouts, all with strides known when compiling:
///   strips: a matrix as strips of 16 words a row, each [rows of the tile][16]: q, k, v, dout, whose words
///   hold neighbouring columns (along) or neighbouring rows (down), and sums, in f32; across: [keys][queries
///   of the tile]: scores, so that a softmax goes down the rows, sixteen queries at a time.
/// An element of a product is one chain in ascending order, whichever block it falls into.
namespace mindpipe::MINDPIPE_ISA::tile {

#if MINDPIPE_ISA_LEVEL == 2
constexpr int block_rows = 12;  ///< 24 of 32 registers are sums
#else
constexpr int block_rows = 6;  ///< 12 of 16 registers are sums
#endif
static_assert(queries % 32 == 0 && queries % block_rows == 0 && keys % block_rows == 0 && keys % 4 == 0);

/// Where a block's sums begin: at zero, at c, or at c times a factor of its row.
enum class Start { zero, sum, scaled_sum };

/// c[m][n] = start + sum over steps of a[m][step] b[step][n], for block_rows rows and `width` registers of
/// columns. The steps come in segments of 16, the last of which may be short, a going on by a_segment; with a
/// single segment `last` is any number. Columns beyond the first 16 lie b_strip and c_strip further.
template <class Unit, Start start, int width, int a_row, int a_step, int a_segment, int b_step, int b_strip,
          int c_row, int c_strip>
__attribute__((noinline)) void block(const float* a, int segments, std::int64_t last, const float* b,
                                     const float* factors, float* c) {
  FloatPart sum[block_rows][width];
#pragma GCC unroll 16
  for (int m = 0; m < block_rows; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < width; ++n) {
      const int column = n * part_lanes;
      const float* at = c + m * c_row + column / lanes * c_strip + column % lanes;
      if constexpr (start == Start::zero) sum[m][n] = MINDPIPE_MM(setzero_ps)();
      else sum[m][n] = MINDPIPE_MM(loadu_ps)(at);
      if constexpr (start == Start::scaled_sum)
        sum[m][n] = MINDPIPE_MM(mul_ps)(sum[m][n], MINDPIPE_MM(set1_ps)(factors[m]));
    }
  for (int segment = 0; segment < segments; ++segment, a += a_segment) {
    const std::int64_t count = segment + 1 < segments ? lanes : last;
    const float* from = a;
    for (std::int64_t step = 0; step < count; ++step, from += a_step, b += b_step) {
      FloatPart right[width];
#pragma GCC unroll 4
      for (int n = 0; n < width; ++n)
        right[n] = MINDPIPE_MM(loadu_ps)(b + n * part_lanes / lanes * b_strip + n * part_lanes % lanes);
#pragma GCC unroll 16
      for (int m = 0; m < block_rows; ++m) {
        const FloatPart left = MINDPIPE_MM(set1_ps)(from[m * a_row]);
#pragma GCC unroll 4
        for (int n = 0; n < width; ++n) sum[m][n] = Unit::meet(left, right[n], sum[m][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < block_rows; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < width; ++n) {
      const int column = n * part_lanes;
      MINDPIPE_MM(storeu_ps)(c + m * c_row + column / lanes * c_strip + column % lanes, sum[m][n]);
    }
}

constexpr int panel = 2 * part_lanes;  ///< columns of a block of width 2

/// How the causal diagonal crosses a tile: query i of the tile sees its keys j < i + diagonal.
struct Extent {
  int rows = 0;      ///< keys in use
  int columns = 0;   ///< queries in use
  int diagonal = 0;  ///< `keys` or more where nothing is masked
};
MINDPIPE_INLINE int clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
MINDPIPE_INLINE int round_up(int x, int to) { return (x + to - 1) / to * to; }
/// Keys that query i sees.
MINDPIPE_INLINE int seen_by(const Extent& extent, int i) {
  return clamp(i + extent.diagonal, 0, extent.rows);
}
/// The first query that sees key j.
MINDPIPE_INLINE int first_to_see(const Extent& extent, int j) {
  return clamp(j - extent.diagonal + 1, 0, extent.columns);
}

/// scores[keys][queries] = left(strips) right[words of width][queries]: blocks that no query sees are left
/// out
template <class Unit>
void scores(const Extent& extent, int words, const float* left, const float* right, float* result) {
  const int segments = (words + lanes - 1) / lanes, last = words - (segments - 1) * lanes;
  for (int column = 0; column < extent.columns; column += panel) {
    const bool half = part_lanes == lanes && extent.columns - column <= lanes;
    const int rows = seen_by(extent, column + panel - 1);
    for (int row = 0; row < rows; row += block_rows) {
      float* at = result + row * queries + column;
      if (half)
        block<Unit, Start::zero, 1, lanes, 1, keys * lanes, queries, lanes, queries, lanes>(
            left + row * lanes, segments, last, right + column, nullptr, at);
      else
        block<Unit, Start::zero, 2, lanes, 1, keys * lanes, queries, lanes, queries, lanes>(
            left + row * lanes, segments, last, right + column, nullptr, at);
    }
  }
}

/// sums(strips of queries) = sums factors[queries] + weights[words of keys][queries]^T right(strips of keys)
template <class Words, Start start>
void add_over_keys(const Extent& extent, int width, const float* weights, const float* right,
                   const float* factors, float* sums) {
  for (int column = 0; column < width; column += panel) {
    const bool half = part_lanes == lanes && width - column <= lanes;
    constexpr int strip = words_of<Words>(keys) * lanes;
    const float* b = right + column / lanes * strip + column % lanes;
    float* c = sums + column / lanes * (queries * lanes) + column % lanes;
    for (int row = 0; row < extent.columns; row += block_rows) {
      const int count = words_of<Words>(seen_by(extent, row + block_rows - 1));
      if (count == 0) continue;
      const float* factor = start == Start::scaled_sum ? factors + row : nullptr;
      if (half)
        block<typename Words::Unit, start, 1, 1, queries, 0, lanes, strip, lanes, queries * lanes>(
            weights + row, 1, count, b, factor, c + row * lanes);
      else
        block<typename Words::Unit, start, 2, 1, queries, 0, lanes, strip, lanes, queries * lanes>(
            weights + row, 1, count, b, factor, c + row * lanes);
    }
  }
}

/// sums(strips of keys) += weights[keys][words of queries] right(strips of queries)
template <class Words>
void add_over_queries(const Extent& extent, int width, const float* weights, const float* right,
                      float* sums) {
  for (int column = 0; column < width; column += panel) {
    const bool half = part_lanes == lanes && width - column <= lanes;
    constexpr int words = words_of<Words>(queries), strip = words * lanes;
    const float* b = right + column / lanes * strip + column % lanes;
    float* c = sums + column / lanes * (keys * lanes) + column % lanes;
    for (int row = 0; row < extent.rows; row += block_rows) {
      if (first_to_see(extent, row) == extent.columns) continue;
      const int first = first_to_see(extent, row) / Words::depths,
                count = words_of<Words>(extent.columns) - first;
      const float* a = weights + row * words + first;
      if (half)
        block<typename Words::Unit, Start::sum, 1, words, 1, 0, lanes, strip, lanes, keys * lanes>(
            a, 1, count, b + first * lanes, nullptr, c + row * lanes);
      else
        block<typename Words::Unit, Start::sum, 2, words, 1, 0, lanes, strip, lanes, keys * lanes>(
            a, 1, count, b + first * lanes, nullptr, c + row * lanes);
    }
  }
}

}  // namespace mindpipe::MINDPIPE_ISA::tile
