#pragma once
#include "cpu/simd/attention_amx_blocks.h"
#include "cpu/simd/attention_call.h"
#include "cpu/simd/attention_forward.h"
#include "cpu/simd/number.h"
#include "cpu/simd/products_words.h"
#include "cpu/simd/transpose.h"

/// Rows of heads into tiles; rows and columns that are not there are zeros. `from` is the first row.
namespace mindpipe::MINDPIPE_ISA::amx {

using products::PairWords;
using tile::Carver;

inline int steps_of(std::int64_t width) { return static_cast<int>((width + side - 1) / side); }
inline int strips_of(std::int64_t width) { return static_cast<int>((width + half - 1) / half); }
inline std::int64_t whole_sides(std::int64_t rows) { return (rows + side - 1) / side * side; }
inline int at_most_side(std::int64_t rows) { return static_cast<int>(rows < side ? rows : side); }

/// A tile of sixteen rows, 32 columns wide; or `turned`, as pairs of columns by rows.
template <bool turned>
void pack_along(const bf16* from, std::int64_t stride, int rows, int width, float* to) {
  Vector row[lanes];
  if (rows >= lanes && width >= side) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) row[i] = load(reinterpret_cast<const float*>(from + i * stride));
  } else {
    for (int i = 0; i < lanes; ++i) row[i] = i < rows ? PairWords::along(from + i * stride, width) : zero();
  }
  if constexpr (turned) transpose(row);
  for (int i = 0; i < lanes; ++i) store(to + i * lanes, row[i]);
}
/// A tile of 32 rows, sixteen columns wide, as pairs of rows by columns; or `turned`, columns as its rows.
template <bool turned>
void pack_across(const bf16* from, std::int64_t stride, int rows, int width, float* to) {
  Vector row[lanes];
  if (rows >= side && width >= lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) row[i] = PairWords::across(from + 2 * i * stride, stride, side, lanes);
  } else {
    for (int i = 0; i < lanes; ++i)
      row[i] = PairWords::across(from + 2 * i * stride, stride, rows - 2 * i, width);
  }
  if constexpr (turned) transpose(row);
  for (int i = 0; i < lanes; ++i) store(to + i * lanes, row[i]);
}

/// 32 rows as the left factor of products over the width: [upper, lower][step]
inline void pack_left(const bf16* from, std::int64_t stride, int rows, int width, float* to) {
  for (int i = 0; i < 2; ++i)
    for (int first = 0; first < width; first += side, to += tile_floats)
      pack_along<false>(from + i * half * stride + first, stride, rows - i * half, width - first, to);
}
/// 32 rows as the right one: [step][left, right]
inline void pack_right(const bf16* from, std::int64_t stride, int rows, int width, float* to) {
  for (int first = 0; first < width; first += side)
    for (int i = 0; i < 2; ++i, to += tile_floats)
      pack_along<true>(from + i * half * stride + first, stride, rows - i * half, width - first, to);
}
/// 32 rows as one step of products over rows: a tile for each sixteen columns, of the left factor (`turned`)
/// or of the right one.
template <bool turned>
void pack_step(const bf16* from, std::int64_t stride, int rows, int width, float* to) {
  for (int first = 0; first < width; first += half, to += tile_floats)
    pack_across<turned>(from + first, stride, rows, width - first, to);
}

/// Asks for rows of a head, which lie far apart, beyond what the processor fetches ahead by itself.
template <int write = 0>
MINDPIPE_INLINE void fetch_rows(const bf16* from, std::int64_t stride, std::int64_t rows, int width) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (int first = 0; first < width; first += side) __builtin_prefetch(from + i * stride + first, write);
}

/// Rows that will be needed soon, asked for a few at a time beside products: at once they would hold up what
/// follows.
class Ahead {
 public:
  void add(const bf16* from, std::int64_t stride, std::int64_t rows, int width, bool write) {
    if (rows <= 0) return;
    list_[count_++] = {from, stride, rows, width, write};
    left_ += rows;
  }
  /// Spreads the fetches of all rows over `times` calls.
  void spread(std::int64_t times) { rate_ = (left_ + times - 1) / times; }
  MINDPIPE_INLINE void fetch() {
    for (std::int64_t i = 0; i < rate_ && now_ < count_; ++i) {
      Rows& rows = list_[now_];
      if (rows.write) fetch_rows<1>(rows.at, rows.stride, 1, rows.width);
      else fetch_rows(rows.at, rows.stride, 1, rows.width);
      rows.at += rows.stride;
      if (--rows.left == 0) ++now_;
    }
  }

 private:
  struct Rows {
    const bf16* at;
    std::int64_t stride, left;
    int width;
    bool write;
  };
  static constexpr int most = 4;
  Rows list_[most];
  int count_ = 0, now_ = 0;
  std::int64_t left_ = 0, rate_ = 0;
};

}  // namespace mindpipe::MINDPIPE_ISA::amx
