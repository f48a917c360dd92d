#pragma once
#include "cpu/products.h"
#include "cpu/simd/activation.h"

/// What happens to sums of a product on their way to memory.
namespace mindpipe::MINDPIPE_ISA::products {

MINDPIPE_INLINE Vector load_from(const MatrixView& view, std::int64_t at, int count) {
  if (view.bf16) {
    const auto* from = static_cast<const std::uint16_t*>(view.data) + at;
    return count >= lanes ? load(from) : load(from, count);
  }
  const auto* from = static_cast<const float*>(view.data) + at;
  return count >= lanes ? load(from) : load(from, count);
}
MINDPIPE_INLINE void store_to(const MatrixView& view, std::int64_t at, Vector x, int count) {
  if (view.bf16) {
    auto* to = static_cast<std::uint16_t*>(view.data) + at;
    count >= lanes ? store(to, x) : store(to, x, count);
  } else {
    auto* to = static_cast<float*>(view.data) + at;
    count >= lanes ? store(to, x) : store(to, x, count);
  }
}

/// Whether c is written once, in whole lines of the cache, and is too large for the last cache to keep it
/// until it is read: logits, and activations in f32 of many rows.
inline bool streams_c(const Product& product) {
  constexpr std::int64_t kept_bytes = std::int64_t{32} << 20;
  return !product.c.bf16 && !product.accumulate && product.cols % lanes == 0 &&
         reinterpret_cast<std::uintptr_t>(product.c.data) % 64 == 0 &&
         product.rows * product.cols * 4 > kept_bytes;
}

/// forward: z = sum + bias; before = z; c = activation(z). backward: c = sum * activation'(before)
template <Activation activation>
inline void finish_tile(const Product& product, const float* tile, int tile_stride, std::int64_t row,
                        int rows, std::int64_t col, int cols) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; j += lanes) {
      const std::int64_t at = (row + i) * product.cols + col + j;
      Vector z = load(tile + i * tile_stride + j);
      if (product.backward) {
        if (activation != Activation::none)
          z = z * activation_derivative(activation, load_from(product.before, at, cols - j));
      } else {
        if (product.bias.data) z = z + load_from(product.bias, col + j, cols - j);
        if (activation != Activation::none) {
          if (product.before.data) store_to(product.before, at, z, cols - j);
          z = activate(activation, z);
        }
      }
      store_to(product.c, at, z, cols - j);
    }
}

/// Sends the sums in `tile` (rows of tile_stride floats) to `rows` rows and `cols` columns of c.
inline void finish_tile(const Product& product, const float* tile, int tile_stride, std::int64_t row,
                        int rows, std::int64_t col, int cols) {
  const Activation a = product.activation;
  if (a == Activation::none) finish_tile<Activation::none>(product, tile, tile_stride, row, rows, col, cols);
  if (a == Activation::relu) finish_tile<Activation::relu>(product, tile, tile_stride, row, rows, col, cols);
  if (a == Activation::gelu) finish_tile<Activation::gelu>(product, tile, tile_stride, row, rows, col, cols);
  if (a == Activation::silu) finish_tile<Activation::silu>(product, tile, tile_stride, row, rows, col, cols);
  if (a == Activation::gelu_exact)
    finish_tile<Activation::gelu_exact>(product, tile, tile_stride, row, rows, col, cols);
}

/// tile = old values of c
inline void fetch_tile(const Product& product, float* tile, int tile_stride, std::int64_t row, int rows,
                       std::int64_t col, int cols) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; j += lanes)
      store(tile + i * tile_stride + j, load_from(product.c, (row + i) * product.cols + col + j, cols - j));
}

/// tile = old values of c + tile
inline void add_old(const Product& product, float* tile, int tile_stride, std::int64_t row, int rows,
                    std::int64_t col, int cols) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; j += lanes) {
      float* to = tile + i * tile_stride + j;
      store(to, load_from(product.c, (row + i) * product.cols + col + j, cols - j) + load(to));
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::products
