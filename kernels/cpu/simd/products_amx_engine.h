#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/products.h"
#include "cpu/simd/products_amx_strip.h"

/// The bf16 product engine for processors with tiles. A thread cuts its part into passes over rows and strips
/// of columns (products_amx_cut.h). A strip (products_amx_strip.h) packs its part of the right factor into
/// tiles (products_amx_pack.h) that stay in the second cache, and cell by cell of 32 x 32 sums the left
/// factor meets it in the tiles (products_amx_cell.h).
namespace mindpipe::MINDPIPE_ISA::products::amx {

/// A sum of no products. (One over padding would turn an old -0 into 0.)
inline void run_without_depth(const Product& product, const ProductPart& part) {
  for (std::int64_t row = part.first_row; row < part.last_row; row += side)
    for (std::int64_t col = part.first_col; col < part.last_col; col += side) {
      Sums sums{};
      const int rows = at_most_side(part.last_row - row), cols = at_most_side(part.last_col - col);
      if (product.accumulate) fetch_tile(product, sums.at[0], side, row, rows, col, cols);
      finish_tile(product, sums.at[0], side, row, rows, col, cols);
    }
}

template <class Tiles>
void run(const Product& product, const ProductPart& part, void* workspace) {
  if (part.last_row <= part.first_row || part.last_col <= part.first_col) return;
  if (product.depth == 0) return run_without_depth(product, part);
  const TileProduct tiles = tile_product(product, part);
  const ProductPart& all = tiles.part;
  const DepthPasses depths(product.depth);
  const std::int64_t rows = all.last_row - all.first_row, panels = panels_of(all.last_col - all.first_col),
                     widest = widest_strip(depths), strips = (panels + widest - 1) / widest,
                     most_rows = depths.count == 1 ? rows : pass_panels * side;
  CellInTiles<Tiles> in_tiles;
  for (std::int64_t row = all.first_row; row < all.last_row; row += most_rows)
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t last_row = row + most_rows,
                         last_col = all.first_col + panels * (strip + 1) / strips * side;
      const ProductPart some{row, last_row < all.last_row ? last_row : all.last_row,
                             all.first_col + panels * strip / strips * side,
                             last_col < all.last_col ? last_col : all.last_col};
      Strip<Tiles>(in_tiles, tiles, some, *static_cast<Workspace*>(workspace)).run();
    }
  if (streams_c(product)) stream_end();
}

inline std::size_t workspace_bytes(std::int64_t rows, std::int64_t depth) {
  return offsetof(Workspace, sums) + static_cast<std::size_t>(waiting_cells(rows, depth)) * sizeof(Sums);
}

/// The engine over these tiles.
template <class Tiles>
constexpr ProductKernels kernels_of{side, side, workspace_bytes, run<Tiles>};

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
