#pragma once
#include "cpu/products.h"
#include "cpu/simd/products_end_rows.h"
#include "cpu/simd/products_pack.h"
#include "cpu/simd/products_thin.h"

/// The product engine of the vector units, over a Words (products_words.h). A thread takes a strip of columns
/// and, for each block of depth, packs its part of b once into a slab that stays in the second cache, then
/// walks over panels of `tile_rows` rows of a: each is copied into the first cache and meets all of the
/// slab's panels of `tile_cols` columns. Sums wait in tiles of their own between blocks of depth.
namespace mindpipe::MINDPIPE_ISA::products {

#if MINDPIPE_ISA_LEVEL == 2
constexpr int tile_rows = 14, tile_vectors = 2, strip_cols = 768;  // 28 accumulators of 32 registers
#elif MINDPIPE_ISA_LEVEL == 1
constexpr int tile_rows = 6, tile_vectors = 1, strip_cols = 256;  // 12 of 16
#else
constexpr int tile_rows = 2, tile_vectors = 1, strip_cols = 256;  // 8 of 16
#endif
constexpr int tile_cols = tile_vectors * lanes;
constexpr int strip_panels = strip_cols / tile_cols;
constexpr int most_rows = 2048;  // of a pass: its waiting sums fit the third cache
constexpr int most_row_panels = (most_rows + tile_rows - 1) / tile_rows;
constexpr int block_words = depth_block;       // a word is one depth or more
constexpr int a_stride = block_words + lanes;  // rows of a panel start in different sets of the cache
constexpr int a_width = tile_rows > 8 ? 16 : tile_rows > 4 ? 8 : 2;  // of a depth-first panel
constexpr int most_a_panels = 4;  // of a depth-first a, packed at once to read long runs
constexpr int tile_size = tile_rows * tile_cols;

/// One thread's memory. Of the tiles, only those of the rows there are; one where depth is a single block.
struct Workspace {
  alignas(64) float slab[strip_panels][block_words * tile_cols];
  alignas(64) float a[most_a_panels][(tile_rows * a_stride > a_width * block_words ? tile_rows * a_stride
                                                                                   : a_width * block_words) +
                                     lanes];
  alignas(64) float tiles[most_row_panels][strip_panels][tile_size];
};

/// Memory that will be read soon: lines at `at` and `second` bytes beyond, 16 times `step` bytes further.
struct Ahead {
  const char* at;
  std::int64_t step, second;
};

/// tile = (add ? tile : 0) + the chain over words of a(i) and b(j); word s of a(i) lies at a[i * a_stride +
/// s], or a[s * a_width + i]
template <class Arithmetic, int rows, bool depth_first>
void multiply(const float* a, const float* b, int words, float* tile, bool add, Ahead of_a, Ahead of_c) {
  Vector sum[rows][tile_vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) sum[i][v] = zero();
  const auto step = [&](int s) __attribute__((always_inline)) {
    Vector row_of_b[tile_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) {
      row_of_b[v] = load(b + s * tile_cols + v * lanes);
      __builtin_prefetch(b + (s + 12) * tile_cols + v * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vector x = broadcast(depth_first ? a[s * a_width + i] : a[i * a_stride + s]);
#pragma GCC unroll 4
      for (int v = 0; v < tile_vectors; ++v) sum[i][v] = Arithmetic::meet(x, row_of_b[v], sum[i][v]);
    }
  };
  int left = words;
  for (; left >= 16; left -= 16) {
    constexpr int locality =
        depth_first ? 2 : 3;  // depths lie far apart, often in one set of the first cache
    __builtin_prefetch(of_a.at, 0, locality);
    __builtin_prefetch(of_a.at + of_a.second, 0, locality);
    __builtin_prefetch(of_c.at);
    __builtin_prefetch(of_c.at + of_c.second);
    of_a.at += of_a.step;
    of_c.at += of_c.step;
#pragma GCC unroll 2
    for (int s = 0; s < 16; ++s) step(s);
    a += depth_first ? 16 * a_width : 16;
    b += 16 * tile_cols;
  }
  for (int s = 0; s < left; ++s) step(s);
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < tile_vectors; ++v) {
      float* to = tile + i * tile_cols + v * lanes;
      store(to, add ? load(to) + sum[i][v] : sum[i][v]);
    }
}

using Multiply = void (*)(const float*, const float*, int, float*, bool, Ahead, Ahead);
struct MultiplyTable {
  Multiply with[2][tile_rows + 1];
};
template <class Arithmetic, int rows>
constexpr void fill_in(MultiplyTable& table) {
  table.with[0][rows] = multiply<Arithmetic, rows, false>;
  table.with[1][rows] = multiply<Arithmetic, rows, true>;
  if constexpr (rows > 1) fill_in<Arithmetic, rows - 1>(table);
}
template <class Arithmetic>
constexpr MultiplyTable make_table() {
  MultiplyTable table{};
  fill_in<Arithmetic, tile_rows>(table);
  return table;
}
template <class Arithmetic>
constexpr MultiplyTable table = make_table<Arithmetic>();

/// How the rows of a part are cut into panels of nearly equal height, so that none is a thin remainder.
struct RowPanels {
  std::int64_t first, rows;
  int count;
  RowPanels(std::int64_t begin, std::int64_t end)
      : first(begin), rows(end - begin), count(static_cast<int>((rows + tile_rows - 1) / tile_rows)) {}
  std::int64_t row(int panel) const { return first + rows * panel / count; }
  int height(int panel) const { return static_cast<int>(row(panel + 1) - row(panel)); }
};

/// Lanes that the next vector uses, at most sixteen, if `left` are left.
inline int clipped(std::int64_t left) { return static_cast<int>(left < lanes ? left : lanes); }

/// Fetches `run` values of each depth of a word that is packed a few words later, where that many are left.
template <class Words>
MINDPIPE_INLINE void fetch_rows_ahead(const typename Words::Value* from, std::int64_t stride, int run,
                                      int left) {
  constexpr int ahead = 8 * Words::depths, line = 64 / sizeof(typename Words::Value);
  if (left < ahead + Words::depths) return;
  for (int d = 0; d < Words::depths; ++d) {
    const auto* row = from + (ahead + d) * stride;
    for (int i = 0; i < run; i += line) __builtin_prefetch(row + i);
    __builtin_prefetch(row + run - 1);
  }
}

/// Packs panel r of a, of a depth-first factor a group of most_a_panels; returns where panel r lies.
template <class Words>
const float* pack_a(const Factor& a, std::int64_t all_rows, const RowPanels& panels, int r,
                    std::int64_t first_depth, int depth, Workspace& work) {
  const auto* from = static_cast<const typename Words::Value*>(a.data);
  if (!a.depth_first) {
    pack_rows<Words>(from + panels.row(r) * a.stride + first_depth, a.stride, panels.height(r), depth,
                     work.a[0], a_stride);
    return work.a[0];
  }
  const int place = r % most_a_panels;
  if (place == 0) {
    const int count = panels.count - r < most_a_panels ? panels.count - r : most_a_panels;
    std::int64_t first_row[most_a_panels];
    for (int i = 0; i < count; ++i) first_row[i] = panels.row(r + i);
    from += first_depth * a.stride;
    const auto run = static_cast<int>(panels.row(r + count) - first_row[0]);
    for (int p = 0; p < depth; p += Words::depths, from += Words::depths * a.stride) {
      fetch_rows_ahead<Words>(from + first_row[0], a.stride, run, depth - p);
      for (int i = 0; i < count; ++i)  // whole vectors: what is too much is written over by the next word
        store(work.a[i] + p / Words::depths * a_width,
              Words::across(from + first_row[i], a.stride, depth - p, clipped(all_rows - first_row[i])));
    }
  }
  return work.a[place];
}
/// Packs panels [first, last) of the strip at `col`: of a depth-first factor several, to read long runs.
template <class Words>
void pack_b(const Factor& b, std::int64_t col, std::int64_t last_col, int first, int last,
            std::int64_t first_depth, int depth, Workspace& work) {
  const auto* from = static_cast<const typename Words::Value*>(b.data);
  if (!b.depth_first) {
    for (int c = first; c < last; ++c) {
      const std::int64_t at = col + c * tile_cols, left = last_col - at;
      pack_transposed<Words, tile_cols>(from + at * b.stride + first_depth, b.stride,
                                        static_cast<int>(left < tile_cols ? left : tile_cols), depth,
                                        work.slab[c]);
    }
    return;
  }
  from += first_depth * b.stride;
  const std::int64_t begin = col + first * tile_cols, end = col + last * tile_cols;
  const auto run = static_cast<int>((end < last_col ? end : last_col) - begin);
  for (int p = 0; p < depth; p += Words::depths, from += Words::depths * b.stride) {
    fetch_rows_ahead<Words>(from + begin, b.stride, run, depth - p);
    for (int c = first; c < last; ++c)
      for (int v = 0; v < tile_vectors; ++v) {
        const std::int64_t at = col + c * tile_cols + v * lanes;
        store(work.slab[c] + p / Words::depths * tile_cols + v * lanes,
              Words::across(from + at, b.stride, depth - p, clipped(last_col - at)));
      }
  }
}

/// What the tile (r, c) of `col_panels` in a row can fetch ahead of panels of a to come: of the next panel a
/// row, or two; of the next group of depth-first panels sixteen depths, in two pairs of neighbouring lines
/// each.
template <class Words>
Ahead ahead_of_a(const Factor& a, const RowPanels& panels, int r, int c, int col_panels,
                 std::int64_t first_depth, int depth) {
  constexpr std::int64_t bytes = sizeof(typename Words::Value);
  const char* from = static_cast<const char*>(a.data);
  if (a.depth_first) {
    const int place = r % most_a_panels, next = r - place + most_a_panels;
    if (next >= panels.count) return {from, 0, 0};
    const int p = depth * (place * col_panels + c) / (col_panels * most_a_panels);
    return {from + ((first_depth + p) * a.stride + panels.row(next)) * bytes,
            Words::depths * a.stride * bytes, 128};
  }
  if (r + 1 == panels.count) return {from, 0, 0};
  const int height = panels.height(r + 1), first = c * height / col_panels,
            second = (c + 1) * height / col_panels - 1;
  return {from + ((panels.row(r + 1) + first) * a.stride + first_depth) * bytes, 16 * Words::depths * bytes,
          second > first ? a.stride * bytes : 0};
}

/// The part of c that a tile covers.
inline Ahead ahead_of_c(const Product& product, std::int64_t row, std::int64_t col) {
  const std::int64_t bytes = product.c.bf16 ? 2 : 4;
  return {static_cast<const char*>(product.c.data) + (row * product.cols + col) * bytes, product.cols * bytes,
          (tile_cols - 1) * bytes};
}

/// Few rows, and whole squares of b to turn.
inline bool is_thin(const Product& product, const RowPanels& panels) {
  return panels.count == 1 && panels.rows <= thin_rows && !product.b.depth_first && !product.a.depth_first;
}

/// Computes at most most_rows rows and strip_cols columns of a product.
template <class Words>
void run_strip(const Product& product, const ProductPart& part, Workspace& work) {
  const RowPanels panels(part.first_row, part.last_row);
  const int col_panels = static_cast<int>((part.last_col - part.first_col + tile_cols - 1) / tile_cols);
  constexpr int block_depth = block_words * Words::depths;
  const std::int64_t blocks = product.depth == 0 ? 1 : (product.depth + block_depth - 1) / block_depth;
  const bool thin = is_thin(product, panels);
  const int packed_at_once = thin ? 1 : 4;  // panels of b
  const FinishRows finish_whole = choose_finish_rows(product);
  const bool streams = streams_c(product);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first_depth = block * block_depth, left = product.depth - first_depth;
    const int depth = static_cast<int>(left < block_depth ? left : block_depth);
    for (int r = 0; r < panels.count; ++r) {
      const std::int64_t row = panels.row(r);
      const int height = panels.height(r);
      const float* a = pack_a<Words>(product.a, product.rows, panels, r, first_depth, depth, work);
      for (int c = 0; c < col_panels; ++c) {
        const std::int64_t col = part.first_col + c * tile_cols;
        const int width = static_cast<int>(part.last_col - col < tile_cols ? part.last_col - col : tile_cols);
        const bool in_place = thin && width == tile_cols;
        if (r == 0 && c % packed_at_once == 0 && !in_place)
          pack_b<Words>(product.b, part.first_col, part.last_col, c,
                        c + packed_at_once < col_panels ? c + packed_at_once : col_panels, first_depth, depth,
                        work);
        float* tile = blocks == 1 ? work.tiles[0][0] : work.tiles[r][c];
        const bool old = block == 0 && product.accumulate;
        const Ahead of_a = ahead_of_a<Words>(product.a, panels, r, c, col_panels, first_depth, depth);
        const Ahead of_c = old || (blocks == 1 && !streams)
                               ? ahead_of_c(product, row, col)
                               : Ahead{reinterpret_cast<const char*>(tile), tile_cols * 4, 64};
        if (in_place)
          thin_table<tile_vectors, Words>[height - 1](
              a, a_stride,
              static_cast<const typename Words::Value*>(product.b.data) + col * product.b.stride +
                  first_depth,
              product.b.stride, depth, tile, block > 0);
        else
          table<typename Words::Arithmetic>.with[product.a.depth_first][height](
              a, work.slab[c], words_of<Words>(depth), tile, block > 0, of_a, of_c);
        const bool last = block == blocks - 1, whole_rows = tile_vectors == 2 && width == tile_cols;
        if (last && whole_rows) {
          finish_whole(product, tile, row, height, col, old);
          continue;
        }
        if (old) add_old(product, tile, tile_cols, row, height, col, width);
        if (last) finish_tile(product, tile, tile_cols, row, height, col, width);
      }
    }
  }
}

template <class Words>
void run(const Product& product, const ProductPart& part, void* workspace) {
  const std::int64_t rows = part.last_row - part.first_row, cols = part.last_col - part.first_col;
  if (rows <= 0 || cols <= 0) return;
  const std::int64_t passes = (rows + most_rows - 1) / most_rows, panels = (cols + tile_cols - 1) / tile_cols;
  const std::int64_t strips = (panels + strip_panels - 1) / strip_panels;
  for (std::int64_t pass = 0; pass < passes; ++pass)
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      const std::int64_t last = part.first_col + panels * (strip + 1) / strips * tile_cols;
      run_strip<Words>(
          product,
          {part.first_row + rows * pass / passes, part.first_row + rows * (pass + 1) / passes,
           part.first_col + panels * strip / strips * tile_cols, last < part.last_col ? last : part.last_col},
          *static_cast<Workspace*>(workspace));
    }
  if (streams_c(product)) stream_end();
}

/// Bytes that a thread works in for a part of `rows` rows, summed by blocks of `block_depth` depths.
template <int block_depth>
std::size_t workspace_bytes(std::int64_t rows, std::int64_t depth) {
  const std::int64_t panels = ((rows < most_rows ? rows : most_rows) + tile_rows - 1) / tile_rows;
  const std::int64_t floats = depth <= block_depth ? tile_size : panels * strip_panels * tile_size;
  return offsetof(Workspace, tiles) + static_cast<std::size_t>(floats + 15) / 16 * 64;
}

}  // namespace mindpipe::MINDPIPE_ISA::products
