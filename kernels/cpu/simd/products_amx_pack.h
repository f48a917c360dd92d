#pragma once
#include "cpu/products.h"
#include "cpu/simd/products_words.h"
#include "cpu/simd/transpose.h"

/// Factors of a product packed into tiles of bf16.
namespace mindpipe::MINDPIPE_ISA::products::amx {

constexpr int side = 32;        // rows of a panel, two tiles high
constexpr int tile_depth = 32;  // depths of a chunk, one tile of 16 pairs deep
constexpr int tile_bytes = 16 * 64;

constexpr std::int64_t panels_of(std::int64_t rows) { return (rows + side - 1) / side; }
constexpr std::int64_t chunks_of(std::int64_t depth) { return (depth + tile_depth - 1) / tile_depth; }
inline int at_most_side(std::int64_t rows) { return static_cast<int>(rows < side ? rows : side); }

/// 32 rows of a factor, 32 deep: the upper and the lower tile, each of 16 rows of 16 pairs.
struct Chunk {
  alignas(64) float pairs[2][16 * 16];
};

/// Packs one tile: a factor's rows [0, count) and depths [0, depth) from `from` on, zeros beyond. A row of
/// the tile is a row of the factor, as the left operand wants it, or a pair of depths, as the right one does.
template <bool right>
void pack_tile(const Factor& factor, const std::uint16_t* from, int count, int depth, float* to) {
  const std::int64_t stride = factor.stride;
  Vector row[lanes];
  if (count >= lanes && depth >= tile_depth) {  // whole: known to the compiler, which keeps it in registers
    if (factor.depth_first) {
#pragma GCC unroll 16
      for (int q = 0; q < lanes; ++q)
        row[q] = PairWords::across(from + 2 * q * stride, stride, tile_depth, lanes);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) row[i] = PairWords::along(from + i * stride, tile_depth);
    }
  } else if (factor.depth_first) {
    for (int q = 0; q < lanes; ++q)
      row[q] = PairWords::across(from + 2 * q * stride, stride, depth - 2 * q, count);
  } else {
    for (int i = 0; i < lanes; ++i) row[i] = i < count ? PairWords::along(from + i * stride, depth) : zero();
  }
  if (right != factor.depth_first) transpose(row);
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(to + i * lanes, row[i]);
}

/// Packs rows [row, row + rows) of a factor, at most a panel, in `chunks` chunks from `depth` on, of which
/// only `depths` depths are left. A lower tile without rows is left as it is.
template <bool right>
void pack_panel(const Factor& factor, std::int64_t row, int rows, std::int64_t depth, int depths, int chunks,
                Chunk* to) {
  const auto* data = static_cast<const std::uint16_t*>(factor.data);
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (int lower = 0; lower * lanes < rows; ++lower) {
      const std::int64_t i = row + lower * lanes, p = depth + chunk * tile_depth;
      const auto* from = data + (factor.depth_first ? p * factor.stride + i : i * factor.stride + p);
      pack_tile<right>(factor, from, rows - lower * lanes, depths - chunk * tile_depth,
                       to[chunk].pairs[lower]);
    }
}

/// Rows become columns in 32 x 32 floats.
inline void turn(const float* from, float* to) {
  for (int i = 0; i < side; i += lanes)
    for (int j = 0; j < side; j += lanes) {
      Vector row[lanes];
#pragma GCC unroll 16
      for (int k = 0; k < lanes; ++k) row[k] = load(from + (i + k) * side + j);
      transpose(row);
#pragma GCC unroll 16
      for (int k = 0; k < lanes; ++k) store(to + (j + k) * side + i, row[k]);
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
