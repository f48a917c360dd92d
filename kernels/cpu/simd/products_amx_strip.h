#pragma once
#include "cpu/simd/products_amx_cell.h"
#include "cpu/simd/products_amx_cut.h"
#include "cpu/simd/products_end_rows.h"

/// A strip of the right factor, which all rows of the left one walk over.
namespace mindpipe::MINDPIPE_ISA::products::amx {

struct Sums {
  alignas(64) float at[side][side];
};

/// One thread's memory. Of the sums, only those that waiting_cells() counts.
struct Workspace {
  Chunk slab[slab_chunks];  ///< slab of the right factor: [block][panel][chunk of the block]
  Chunk left[block_chunks];
  Sums sums[pass_panels * strip_panels];
};

/// A cell of the result as the tiles see it, and where its sums wait.
struct Cell {
  float* sums = nullptr;
  std::int64_t row = 0, col = 0;
  int rows = 0, cols = 0;
  bool whole() const { return rows == side && cols == side; }
};

/// The right factor is packed once into the slab, each block of a panel just before its first use. For each
/// pass over depth, row of cells and block of depth, the left factor's block, in L1, meets the whole strip;
/// sums wait in memory between blocks and go on from there, so that no block shows in the bits.
template <class Tiles>
class Strip {
 public:
  Strip(CellInTiles<Tiles>& in_tiles, const TileProduct& tiles, const ProductPart& part, Workspace& work)
      : in_tiles_(in_tiles),
        tiles_(tiles),
        product_(tiles.product),
        part_(part),
        work_(work),
        row_panels_(static_cast<int>(panels_of(part.last_row - part.first_row))),
        panels_(static_cast<int>(panels_of(part.last_col - part.first_col))),
        passes_(product_.depth),
        adds_in_c_(adds_only(product_)),
        finish_rows_(choose_finish_rows(product_)) {}

  void run() {
    for (std::int64_t pass = 0; pass < passes_.count; ++pass)
      for (int r = 0; r < row_panels_; ++r) run_row(pass, r);
    in_tiles_.put_down();
    finish();
  }

 private:
  void run_row(std::int64_t pass_index, int r) {
    const DepthPass pass = passes_.at(pass_index);
    for (int block = 0; block < pass.blocks; ++block) {
      const int first = pass.first_chunk(block), chunks = pass.first_chunk(block + 1) - first;
      const bool begins = pass_index == 0 && block == 0,
                 ends = pass_index + 1 == passes_.count && block + 1 == pass.blocks;
      const LeftTiles left = left_tiles(pass, block, r);
      for (int c = 0; c < panels_; ++c) {
        if (r == 0) pack_right(pass, block, c);
        const Cell cell = cell_at(r, c);
        const Place waiting{cell.sums, side * sizeof(float)};
        const Place from = !begins ? waiting : product_.accumulate ? old_values(cell, waiting) : Place{};
        in_tiles_.multiply(left, work_.slab + first * panels_ + c * chunks, chunks,
                           {cell.rows > 16, cell.cols > 16}, from,
                           ends && in_c(cell) ? place_in_c(cell) : waiting, ahead_);
        if (begins && c + 1 < panels_) fetch_ahead(cell_at(r, c + 1));
        finish();
        if (ends && !in_c(cell)) complete_ = cell;
      }
    }
  }

  /// Sums wait in two rows of cells, since a row's last cell is finished after the next one has begun, or in
  /// all where they wait for another pass over depth.
  Cell cell_at(int r, int c) const {
    const std::int64_t row = part_.first_row + r * side, col = part_.first_col + c * side;
    return {work_.sums[(passes_.count == 1 ? r % 2 : r) * panels_ + c].at[0], row, col,
            at_most_side(part_.last_row - row), at_most_side(part_.last_col - col)};
  }

  // Factors.

  /// Whether tiles of these rows of the left factor can be loaded from where it lies: whole ones, in lines of
  /// the cache, of which no more than four of a block's meet in one set of L1.
  bool left_in_place(const DepthPass& pass, int rows) const {
    const Factor& left = tiles_.left;
    if (left.depth_first || rows < side || pass.depths < pass.chunks * tile_depth) return false;
    return left.stride % 32 == 0 && reinterpret_cast<std::uintptr_t>(left.data) % 64 == 0 &&
           left.stride / 32 % 16 != 0;
  }
  /// A block of panel r of the left factor, packed where it cannot be read in place.
  LeftTiles left_tiles(const DepthPass& pass, int block, int r) {
    const Cell cell = cell_at(r, 0);
    const Factor& left = tiles_.left;
    const int first = pass.first_chunk(block), chunks = pass.first_chunk(block + 1) - first;
    const std::int64_t depth = pass.first_depth + first * tile_depth, row_bytes = left.stride * 2;
    if (left_in_place(pass, cell.rows))
      return {static_cast<const char*>(left.data) + cell.row * row_bytes + depth * 2, 16 * row_bytes,
              row_bytes, 64};
    pack_panel<false>(left, cell.row, cell.rows, depth, pass.depths - first * tile_depth, chunks, work_.left);
    if (block + 1 < pass.blocks) ahead_.left = lines_of(left, cell.row, depth + chunks * tile_depth, chunks);
    else if (r + 1 < row_panels_) ahead_.left = lines_of(left, cell.row + side, pass.first_depth, chunks);
    ahead_.left_lines = (ahead_.left.left + panels_ * chunks - 1) / (panels_ * chunks);
    return left_tiles_in(work_.left);
  }
  void pack_right(const DepthPass& pass, int block, int c) {
    const Cell cell = cell_at(0, c);
    const int first = pass.first_chunk(block), chunks = pass.first_chunk(block + 1) - first;
    const std::int64_t depth = pass.first_depth + first * tile_depth;
    pack_panel<true>(tiles_.right, cell.col, cell.cols, depth, pass.depths - first * tile_depth, chunks,
                     work_.slab + first * panels_ + c * chunks);
    ahead_.right = {};
    if (c + 1 < panels_) ahead_.right = lines_of(tiles_.right, cell.col + side, depth, chunks);
    else if (block + 1 < pass.blocks)
      ahead_.right = lines_of(tiles_.right, part_.first_col, depth + chunks * tile_depth, chunks);
  }

  // Where sums come from and go to.

  /// Whether a product is added to c, in f32, and nothing else happens to it.
  static bool adds_only(const Product& product) {
    return product.accumulate && !product.c.bf16 && product.activation == Activation::none &&
           (product.backward || !product.bias.data);
  }
  /// Whether a cell's old values go from c into tiles and its sums from tiles to c.
  bool in_c(const Cell& cell) const { return adds_in_c_ && cell.whole(); }
  Place place_in_c(const Cell& cell) const {
    return {static_cast<float*>(product_.c.data) + cell.row * product_.cols + cell.col,
            product_.cols * static_cast<std::int64_t>(sizeof(float))};
  }
  /// Where a cell's old values are loaded from: c itself, or a copy.
  Place old_values(const Cell& cell, const Place& copy) const {
    if (in_c(cell)) return place_in_c(cell);
    fetch_tile(product_, copy.at, side, cell.row, cell.rows, cell.col, cell.cols);
    return copy;
  }
  /// Asks for the lines of c that the next cell's old values are in.
  void fetch_ahead(const Cell& cell) const {
    if (!in_c(cell)) return;
    const Place place = place_in_c(cell);
    const char* line = reinterpret_cast<const char*>(place.at);
    for (int i = 0; i < side; ++i, line += place.row_bytes) {
      __builtin_prefetch(line, 1);
      __builtin_prefetch(line + 64, 1);
    }
  }
  /// Sends the complete sums, which have left their tiles, to memory while the processor still multiplies
  /// those of the next cell.
  void finish() {
    Cell cell = complete_;
    complete_ = {};
    if (cell.rows == 0) return;
    Sums turned;
    if (tiles_.turned) {
      turn(cell.sums, turned.at[0]);
      cell = {turned.at[0], cell.col, cell.row, cell.cols, cell.rows};
    }
    if (cell.cols == side) finish_rows_(product_, cell.sums, cell.row, cell.rows, cell.col, false);
    else finish_tile(product_, cell.sums, side, cell.row, cell.rows, cell.col, cell.cols);
  }

  CellInTiles<Tiles>& in_tiles_;
  const TileProduct& tiles_;
  const Product& product_;
  const ProductPart part_;  ///< rows are the left factor's, columns the right one's
  Workspace& work_;
  const int row_panels_, panels_;
  const DepthPasses passes_;
  const bool adds_in_c_;
  const FinishRows finish_rows_;
  Cell complete_;  ///< whose last product has begun
  FactorsAhead ahead_;
};

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
