#pragma once
#include "cpu/simd/products_amx_pack.h"

/// Lines of the cache that are asked for before they are packed.
namespace mindpipe::MINDPIPE_ISA::products::amx {

/// Lines that will be read soon: runs of `run` lines, `step` bytes apart, and `turn` bytes more between runs.
/// They are fetched a few at a time beside products: the processor has only sixteen buffers for lines on
/// their way, and all at once would hold up the loads of tiles.
struct LinesAhead {
  const char* at = nullptr;
  std::int64_t step = 0, turn = 0;
  int run = 1, left = 0, in_run = 0;

  MINDPIPE_INLINE void fetch(int lines) {
    for (; lines > 0 && left > 0; --lines, --left) {
      __builtin_prefetch(at);
      at += step;
      if (++in_run == run) {
        at += turn;
        in_run = 0;
      }
    }
  }
};

/// The lines of a panel's rows from `row` on, `chunks` deep from `depth` on; some may lie beyond the factor,
/// as fetching ahead never fails.
inline LinesAhead lines_of(const Factor& factor, std::int64_t row, std::int64_t depth, int chunks) {
  const std::int64_t bytes = factor.stride * 2;
  const auto* data = static_cast<const char*>(factor.data);
  const int lines = chunks * tile_depth;
  if (factor.depth_first) return {data + depth * bytes + row * 2, bytes, 0, lines, lines, 0};
  return {data + row * bytes + depth * 2, bytes, 64 - side * bytes, side, lines, 0};
}

/// What is asked for beside the products of a strip: the next block of each factor that will be packed.
struct FactorsAhead {
  LinesAhead left, right;
  int left_lines = 0;                     ///< for each chunk of a cell but the first
  static constexpr int right_lines = 40;  ///< likewise: a block's 256 lines in the seven chunks of one cell

  MINDPIPE_INLINE void fetch() {
    left.fetch(left_lines);
    right.fetch(right_lines);
  }
};

}  // namespace mindpipe::MINDPIPE_ISA::products::amx
