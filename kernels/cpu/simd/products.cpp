#include "cpu/products.h"

#include "cpu/simd/products_end.h"
#include "cpu/simd/products_pack.h"

/// The f32 product engine. A thread takes a strip of columns and, for each block of depth, packs its part of b once into a slab that
/// stays in the second cache, then walks over panels of `tile_rows` rows of a: each is copied into the first cache and meets all of the
/// slab's panels of `tile_cols` columns. Sums wait in tiles of their own between blocks of depth.
namespace mindpipe::MINDPIPE_ISA {
namespace products {

#if MINDPIPE_ISA_LEVEL == 2
constexpr int tile_rows = 14, tile_vectors = 2, strip_cols = 512;  // 28 accumulators of 32 registers
#elif MINDPIPE_ISA_LEVEL == 1
constexpr int tile_rows = 6, tile_vectors = 1, strip_cols = 256;   // 12 of 16
#else
constexpr int tile_rows = 2, tile_vectors = 1, strip_cols = 256;   // 8 of 16
#endif
constexpr int tile_cols = tile_vectors * lanes;
constexpr int strip_panels = strip_cols / tile_cols;
constexpr int most_rows = 1024;                                      // of a pass: its waiting sums fit the third cache
constexpr int most_row_panels = (most_rows + tile_rows - 1) / tile_rows;
constexpr int a_stride = depth_block + lanes;                        // rows of a panel start in different sets of the cache
constexpr int a_width = tile_rows > 8 ? 16 : tile_rows > 4 ? 8 : 2;  // of a depth-first panel
constexpr int tile_size = tile_rows * tile_cols;

/// One thread's memory.
struct Workspace {
  alignas(64) float slab[strip_panels][depth_block * tile_cols];
  alignas(64) float a[tile_rows * a_stride > a_width * depth_block ? tile_rows * a_stride + lanes : a_width * depth_block + lanes];
  alignas(64) float tiles[most_row_panels][strip_panels][tile_size];
};

/// tile = (add ? tile : 0) + sum over p < depth of a(i, p) b(p, j); a(i, p) lies at a[i * a_stride + p], or a[p * a_width + i]
template <int rows, bool depth_first>
void multiply(const float* a, const float* b, int depth, float* tile, bool add) {
  Vector sum[rows][tile_vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) sum[i][v] = zero();
#pragma GCC unroll 2
  for (int p = 0; p < depth; ++p) {
    Vector row_of_b[tile_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) {
      row_of_b[v] = load(b + p * tile_cols + v * lanes);
      __builtin_prefetch(b + (p + 12) * tile_cols + v * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vector x = broadcast(depth_first ? a[p * a_width + i] : a[i * a_stride + p]);
#pragma GCC unroll 4
      for (int v = 0; v < tile_vectors; ++v) sum[i][v] = multiply_add(x, row_of_b[v], sum[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) {
      float* to = tile + i * tile_cols + v * lanes;
      store(to, add ? load(to) + sum[i][v] : sum[i][v]);
    }
}

using Multiply = void (*)(const float*, const float*, int, float*, bool);
struct MultiplyTable { Multiply with[2][tile_rows + 1]; };
template <int rows>
constexpr void fill_in(MultiplyTable& table) {
  table.with[0][rows] = multiply<rows, false>;
  table.with[1][rows] = multiply<rows, true>;
  if constexpr (rows > 1) fill_in<rows - 1>(table);
}
constexpr MultiplyTable make_table() {
  MultiplyTable table{};
  fill_in<tile_rows>(table);
  return table;
}
constexpr MultiplyTable table = make_table();

template <class T>
void pack_a(const Factor& a, std::int64_t row, int rows, std::int64_t first_depth, int depth, float* to) {
  const T* from = static_cast<const T*>(a.data);
  if (a.depth_first) pack_depths(from + first_depth * a.stride + row, a.stride, rows, depth, to, a_width);
  else pack_rows(from + row * a.stride + first_depth, a.stride, rows, depth, to, a_stride);
}
template <class T>
void pack_b(const Factor& b, std::int64_t col, int cols, std::int64_t first_depth, int depth, float* to) {
  const T* from = static_cast<const T*>(b.data);
  if (b.depth_first) pack_depths(from + first_depth * b.stride + col, b.stride, cols, depth, to, tile_cols);
  else pack_transposed<tile_cols>(from + col * b.stride + first_depth, b.stride, cols, depth, to);
}

/// At most most_rows rows and strip_cols columns. Panels of rows are of nearly equal height, so that none is a thin remainder.
void run_strip(const Product& product, const ProductPart& part, Workspace& work) {
  const std::int64_t rows = part.last_row - part.first_row, cols = part.last_col - part.first_col;
  const int row_panels = static_cast<int>((rows + tile_rows - 1) / tile_rows), col_panels = static_cast<int>((cols + tile_cols - 1) / tile_cols);
  const std::int64_t blocks = product.depth == 0 ? 1 : (product.depth + depth_block - 1) / depth_block;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first_depth = block * depth_block, left = product.depth - first_depth;
    const int depth = static_cast<int>(left < depth_block ? left : depth_block);
    for (int r = 0; r < row_panels; ++r) {
      const std::int64_t row = part.first_row + rows * r / row_panels;
      const int height = static_cast<int>(part.first_row + rows * (r + 1) / row_panels - row);
      (product.a.bf16 ? pack_a<std::uint16_t> : pack_a<float>)(product.a, row, height, first_depth, depth, work.a);
      for (int c = 0; c < col_panels; ++c) {
        const std::int64_t col = part.first_col + c * tile_cols;
        const int width = static_cast<int>(part.last_col - col < tile_cols ? part.last_col - col : tile_cols);
        if (r == 0) (product.b.bf16 ? pack_b<std::uint16_t> : pack_b<float>)(product.b, col, width, first_depth, depth, work.slab[c]);
        float* tile = blocks == 1 ? work.tiles[0][0] : work.tiles[r][c];
        if (block == 0 && product.accumulate) fetch_tile(product, tile, tile_cols, row, height, col, width);
        table.with[product.a.depth_first][height](work.a, work.slab[c], depth, tile, block > 0 || product.accumulate);
        if (block == blocks - 1) finish_tile(product, tile, tile_cols, row, height, col, width);
      }
    }
  }
}

void run(const Product& product, const ProductPart& part, void* workspace) {
  const std::int64_t rows = part.last_row - part.first_row, cols = part.last_col - part.first_col;
  if (rows <= 0 || cols <= 0) return;
  const std::int64_t passes = (rows + most_rows - 1) / most_rows, panels = (cols + tile_cols - 1) / tile_cols;
  const std::int64_t strips = (panels + strip_panels - 1) / strip_panels;
  for (std::int64_t pass = 0; pass < passes; ++pass)
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t last = part.first_col + panels * (strip + 1) / strips * tile_cols;
      run_strip(product,
                {part.first_row + rows * pass / passes, part.first_row + rows * (pass + 1) / passes,
                 part.first_col + panels * strip / strips * tile_cols, last < part.last_col ? last : part.last_col},
                *static_cast<Workspace*>(workspace));
    }
}

}  // namespace products

extern const ProductKernels product_kernels;
const ProductKernels product_kernels{products::tile_rows, products::tile_cols, sizeof(products::Workspace), products::run};

}  // namespace mindpipe::MINDPIPE_ISA
