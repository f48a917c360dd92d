#pragma once
#include "cpu/simd/products_amx_pack.h"

/// How the tile engine cuts a thread's part of a product: into passes over rows and strips of columns, each
/// strip into passes over depth, and those into blocks.
namespace mindpipe::MINDPIPE_ISA::products::amx {

constexpr int block_chunks = 8;   // of 32 depths: a block of the left factor's panel, 16 KiB, stays in L1
constexpr int pass_chunks = 32;   // the deepest pass over a strip
constexpr int strip_panels = 24;  // the widest strip
constexpr int slab_chunks = 512;  // of all panels of a strip: 1 MiB, which stays in L2
constexpr int pass_panels = 32;   // of rows, where sums wait for another pass over depth
constexpr int few_rows = 512;     // of a product whose factors change places

/// A product as the tiles see it. Where `turned` its factors have changed places: the right one's tiles must
/// be packed and the left one's may be read in place, so that with few rows the weight is better the left
/// one. It does not show in the result, as a product of two numbers has no order; only where two no-numbers
/// meet may another one's bits be handed on.
struct TileProduct {
  const Product& product;
  const Factor &left, &right;
  ProductPart part;  ///< rows are the left factor's, columns the right one's
  bool turned;
};
inline TileProduct tile_product(const Product& product, const ProductPart& part) {
  const bool turned = !product.a.depth_first && !product.b.depth_first && !product.accumulate &&
                      part.last_row - part.first_row <= few_rows;
  if (!turned) return {product, product.a, product.b, part, false};
  return {
      product, product.b, product.a, {part.first_col, part.last_col, part.first_row, part.last_row}, true};
}

/// One pass over depth and its blocks of nearly the same size.
struct DepthPass {
  std::int64_t first_depth;
  int chunks, depths, blocks;
  int first_chunk(int block) const { return chunks * block / blocks; }
};

/// The passes over depth, of nearly the same size.
struct DepthPasses {
  std::int64_t depth, chunks = chunks_of(depth), count = (chunks + pass_chunks - 1) / pass_chunks;
  explicit DepthPasses(std::int64_t d) : depth(d) {}
  int deepest() const { return static_cast<int>((chunks + count - 1) / count); }
  DepthPass at(std::int64_t pass) const {
    const std::int64_t first = chunks * pass / count, last = chunks * (pass + 1) / count,
                       end = last * tile_depth < depth ? last * tile_depth : depth;
    const int these = static_cast<int>(last - first);
    return {first * tile_depth, these, static_cast<int>(end - first * tile_depth),
            (these + block_chunks - 1) / block_chunks};
  }
};

/// The widest strip, in panels, whose right factor fits the slab.
inline int widest_strip(const DepthPasses& passes) {
  const int fit = slab_chunks / passes.deepest();
  return fit < strip_panels ? fit : strip_panels;
}

/// Cells whose sums wait in memory: two rows of a strip's, or all of a pass over rows where sums wait for
/// another pass over depth.
inline std::int64_t waiting_cells(std::int64_t rows, std::int64_t depth) {
  if (chunks_of(depth) <= pass_chunks) return 2 * strip_panels;
  const std::int64_t high = panels_of(rows), plain = (high < pass_panels ? high : pass_panels) * strip_panels,
                     wide = high < panels_of(few_rows) ? high : panels_of(few_rows),
                     turned = pass_panels * (wide < strip_panels ? wide : strip_panels);
  return plain > turned ? plain : turned;
}

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
