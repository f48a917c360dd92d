#include "cpu/products.h"

#include "cpu/simd/products_amx_tiles.h"
#include "cpu/simd/products_end.h"
#include "cpu/simd/products_words.h"
#include "cpu/simd/transpose.h"

/// The bf16 product engine for processors with tiles: both factors are packed into tiles, and a block of 32 x
/// 32 sums is built in four of them. As in products.cpp a thread packs a strip of b once per block of depth
/// and lets panels of a walk over it; sums wait in memory between blocks and go on from there, so that the
/// depth of a block does not show in the bits.
namespace mindpipe::MINDPIPE_ISA {
namespace products {

constexpr int side = 32, tile_depth = 32,
              tile_pairs = 16 * 16;  // of a pair of tiles; of a tile; pairs of bf16 in a tile
constexpr int amx_depth = 512, amx_strip = 1024, amx_rows = 1024;
constexpr int amx_chunks = amx_depth / tile_depth, amx_col_panels = amx_strip / side,
              amx_row_panels = amx_rows / side;

/// A panel of 32 rows of a factor, `amx_depth` deep: [chunk][upper, lower][16 rows of 16 pairs]
struct TilePanel {
  alignas(64) float pairs[amx_chunks][2][tile_pairs];
};

/// One thread's memory. Of the tiles, only those of the rows there are; one where depth is a single block.
struct AmxWorkspace {
  TilePanel slab[amx_col_panels];
  TilePanel a;
  alignas(64) float tiles[amx_row_panels][amx_col_panels][side * side];
};

/// One tile of a factor's rows [0, count) and depths [0, depth) from `from` on: a row of the tile is a row of
/// the factor (as the left operand wants it) or, where `turned`, a pair of depths (as the right one does).
template <bool turned>
void pack_tile(const Factor& factor, const std::uint16_t* from, int count, int depth, float* to) {
  Vector row[lanes];
  if (factor.depth_first) {
    for (int q = 0; q < lanes; ++q)
      row[q] = PairWords::across(from + 2 * q * factor.stride, factor.stride, depth - 2 * q, count);
  } else {
    for (int i = 0; i < lanes; ++i)
      row[i] = i < count ? PairWords::along(from + i * factor.stride, depth) : zero();
  }
  if (turned != factor.depth_first) transpose(row);
  for (int i = 0; i < lanes; ++i) store(to + i * lanes, row[i]);
}

template <bool turned>
void pack_panel(const Factor& factor, std::int64_t first_row, int rows, std::int64_t first_depth, int depth,
                TilePanel& to) {
  const auto* data = static_cast<const std::uint16_t*>(factor.data);
  for (int chunk = 0; chunk * tile_depth < depth; ++chunk)
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = first_row + half * lanes, p = first_depth + chunk * tile_depth;
      const int left = depth - chunk * tile_depth;
      pack_tile<turned>(factor,
                        data + (factor.depth_first ? p * factor.stride + row : row * factor.stride + p),
                        rows - half * lanes, left < tile_depth ? left : tile_depth, to.pairs[chunk][half]);
    }
}

/// sums (32 x 32) = (add ? sums : 0) + a b; without `tall` only its upper 16 rows count
template <class Tiles, bool tall>
void multiply_panels(Tiles& tiles, const TilePanel& a, const TilePanel& b, int chunks, float* sums,
                     bool add) {
  constexpr std::int64_t row_bytes = side * sizeof(float);
  if (add) {
    tiles.template load<0>(sums, row_bytes);
    tiles.template load<1>(sums + 16, row_bytes);
    if constexpr (tall) {
      tiles.template load<2>(sums + 16 * side, row_bytes);
      tiles.template load<3>(sums + 16 * side + 16, row_bytes);
    }
  } else {
    tiles.template clear<0>();
    tiles.template clear<1>();
    if constexpr (tall) {
      tiles.template clear<2>();
      tiles.template clear<3>();
    }
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    tiles.template load<6>(b.pairs[chunk][0], 64);
    tiles.template load<4>(a.pairs[chunk][0], 64);
    tiles.template load<7>(b.pairs[chunk][1], 64);
    tiles.template multiply<0, 4, 6>();
    tiles.template multiply<1, 4, 7>();
    if constexpr (tall) {
      tiles.template load<5>(a.pairs[chunk][1], 64);
      tiles.template multiply<2, 5, 6>();
      tiles.template multiply<3, 5, 7>();
    }
  }
  tiles.template store<0>(sums, row_bytes);
  tiles.template store<1>(sums + 16, row_bytes);
  if constexpr (tall) {
    tiles.template store<2>(sums + 16 * side, row_bytes);
    tiles.template store<3>(sums + 16 * side + 16, row_bytes);
  }
}

/// Computes at most amx_rows rows and amx_strip columns of a product.
template <class Tiles>
void run_amx_strip(Tiles& tiles, const Product& product, const ProductPart& part, AmxWorkspace& work) {
  const auto panels = [](std::int64_t count) { return static_cast<int>((count + side - 1) / side); };
  const auto at_most_side = [](std::int64_t count) { return static_cast<int>(count < side ? count : side); };
  const int row_panels = panels(part.last_row - part.first_row),
            col_panels = panels(part.last_col - part.first_col);
  const std::int64_t all_chunks = (product.depth + tile_depth - 1) / tile_depth;
  const std::int64_t blocks = all_chunks == 0 ? 1 : (all_chunks + amx_chunks - 1) / amx_chunks;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first_chunk = all_chunks * block / blocks, first_depth = first_chunk * tile_depth;
    const int chunks = static_cast<int>(all_chunks * (block + 1) / blocks - first_chunk);
    const std::int64_t left = product.depth - first_depth;
    const int depth = static_cast<int>(left < chunks * tile_depth ? left : chunks * tile_depth);
    for (int r = 0; r < row_panels; ++r) {
      const std::int64_t row = part.first_row + r * side;
      const int height = at_most_side(part.last_row - row);
      pack_panel<false>(product.a, row, height, first_depth, depth, work.a);
      for (int c = 0; c < col_panels; ++c) {
        const std::int64_t col = part.first_col + c * side;
        const int width = at_most_side(part.last_col - col);
        if (r == 0) pack_panel<true>(product.b, col, width, first_depth, depth, work.slab[c]);
        float* sums = blocks == 1 ? work.tiles[0][0] : work.tiles[r][c];
        if (block == 0 && product.accumulate) fetch_tile(product, sums, side, row, height, col, width);
        const bool add = block > 0 || product.accumulate;
        if (height > 16) multiply_panels<Tiles, true>(tiles, work.a, work.slab[c], chunks, sums, add);
        else multiply_panels<Tiles, false>(tiles, work.a, work.slab[c], chunks, sums, add);
        if (block == blocks - 1) finish_tile(product, sums, side, row, height, col, width);
      }
    }
  }
}

template <class Tiles>
void run_amx(const Product& product, const ProductPart& part, void* workspace) {
  const std::int64_t rows = part.last_row - part.first_row, cols = part.last_col - part.first_col;
  if (rows <= 0 || cols <= 0) return;
  Tiles tiles;
  const std::int64_t passes = (rows + amx_rows - 1) / amx_rows, panels = (cols + side - 1) / side;
  const std::int64_t strips = (panels + amx_col_panels - 1) / amx_col_panels;
  for (std::int64_t pass = 0; pass < passes; ++pass)
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t last_row = part.first_row + (pass + 1) * amx_rows,
                         last_col = part.first_col + panels * (strip + 1) / strips * side;
      run_amx_strip(tiles, product,
                    {part.first_row + pass * amx_rows, last_row < part.last_row ? last_row : part.last_row,
                     part.first_col + panels * strip / strips * side,
                     last_col < part.last_col ? last_col : part.last_col},
                    *static_cast<AmxWorkspace*>(workspace));
    }
}

std::size_t amx_workspace_bytes(std::int64_t rows, std::int64_t depth) {
  const std::int64_t panels = ((rows < amx_rows ? rows : amx_rows) + side - 1) / side;
  const std::int64_t tiles = depth <= amx_depth ? 1 : panels * amx_col_panels;
  return offsetof(AmxWorkspace, tiles) + static_cast<std::size_t>(tiles) * sizeof(float[side * side]);
}

}  // namespace products

extern const ProductKernels amx_kernels, amx_model_kernels;
const ProductKernels amx_kernels{products::side, products::side, products::amx_workspace_bytes,
                                 products::run_amx<products::ProcessorTiles>};
const ProductKernels amx_model_kernels{products::side, products::side, products::amx_workspace_bytes,
                                       products::run_amx<products::ModelTiles>};

}  // namespace mindpipe::MINDPIPE_ISA
