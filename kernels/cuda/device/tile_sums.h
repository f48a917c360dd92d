#pragma once
#include "cuda/device/block.h"

/// Products of tiles in shared memory, summed in registers: bf16 by tensor cores, f32 by multiply-adds.
namespace mindpipe::cuda::flash {

/// Between rows of a tile lie 16 bytes, so that elements of one column are in different banks.
template <class T>
inline constexpr int tile_pad = 16 / static_cast<int>(sizeof(T));
template <class T, int rows, int cols>
using Tile = T[rows][cols + tile_pad<T>];

/// c[16][cols] f32 of one warp, spread over its lanes: element i of a lane stands at (row_of(i), col_of(i)).
/// add_rows: c += a[16][depth] b[cols][depth]^T. add_cols: c += a[16][depth] b[depth][cols].
template <class T, int cols>
struct WarpSums;

#ifdef __CUDACC__
/// c[16][8] += a[16][16] b[16][8], all in fragments.
MINDPIPE_DEVICE void mma_m16n8k16(float* c, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// Columns of 16 x 8 numbers as a fragment b; lanes 0 to 15 name the rows.
MINDPIPE_DEVICE void ldmatrix_x2_trans(const Bf16* row, std::uint32_t& b0, std::uint32_t& b1) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(b0), "=r"(b1)
               : "r"(at)
               : "memory");
}
#endif

/// Two neighbours as a word.
MINDPIPE_DEVICE std::uint32_t pair_at(const Bf16* at) { return *reinterpret_cast<const std::uint32_t*>(at); }

/// By fragments of mma m16n8k16: lane 4 g + t holds c at rows g and g + 8, columns 2t and 2t + 1 of each
/// eight.
template <int cols>
struct WarpSums<Bf16, cols> {
  static_assert(cols % 8 == 0);
  static constexpr int count = cols / 2;
  float value[count];

  static MINDPIPE_DEVICE int row_of(int i) { return lane() / 4 + (i & 2) * 4; }
  static MINDPIPE_DEVICE int col_of(int i) { return i / 4 * 8 + lane() % 4 * 2 + (i & 1); }
  MINDPIPE_DEVICE void clear() {
    MINDPIPE_UNROLL
    for (float& x : value) x = 0;
  }
  /// a at rows g and g + 8, depths 2t, 2t + 1 and 2t + 8, 2t + 9
  static MINDPIPE_DEVICE void load_left(const Bf16* a, int pitch, std::uint32_t (&left)[4]) {
    const Bf16* at = a + lane() / 4 * pitch + lane() % 4 * 2;
    left[0] = pair_at(at);
    left[1] = pair_at(at + 8 * pitch);
    left[2] = pair_at(at + 8);
    left[3] = pair_at(at + 8 * pitch + 8);
  }
  template <int depth>
  MINDPIPE_DEVICE void add_rows(const Bf16* a, int a_pitch, const Bf16* b, int b_pitch) {
    static_assert(depth % 16 == 0);
    const Bf16* right = b + lane() / 4 * b_pitch + lane() % 4 * 2;  // depths 2t, 2t + 1 of column g
    MINDPIPE_UNROLL
    for (int d = 0; d < depth; d += 16) {
      std::uint32_t left[4];
      load_left(a + d, a_pitch, left);
      MINDPIPE_UNROLL
      for (int n = 0; n < cols / 8; ++n)
        mma_m16n8k16(value + 4 * n, left, pair_at(right + n * 8 * b_pitch + d),
                     pair_at(right + n * 8 * b_pitch + d + 8));
    }
  }
  template <int depth>
  MINDPIPE_DEVICE void add_cols(const Bf16* a, int a_pitch, const Bf16* b, int b_pitch) {
    static_assert(depth % 16 == 0);
    const Bf16* row = b + lane() % 16 * b_pitch;
    MINDPIPE_UNROLL
    for (int d = 0; d < depth; d += 16) {
      std::uint32_t left[4];
      load_left(a + d, a_pitch, left);
      MINDPIPE_UNROLL
      for (int n = 0; n < cols / 8; ++n) {
        std::uint32_t b0, b1;
        ldmatrix_x2_trans(row + d * b_pitch + n * 8, b0, b1);
        mma_m16n8k16(value + 4 * n, left, b0, b1);
      }
    }
  }
};

template <int cols>
struct WarpSums<float, cols> {
  static_assert(cols >= 8 && cols <= 256 && (cols & (cols - 1)) == 0);
  static constexpr int count = cols / 2;
  static constexpr int wide = cols < 32 ? cols : 32;  ///< lanes beside each other
  static constexpr int rows = count * wide / cols;    ///< rows of a lane: every 32 / wide-th
  float value[count];

  static MINDPIPE_DEVICE int row_of(int i) { return i / (count / rows) * (32 / wide) + lane() / wide; }
  static MINDPIPE_DEVICE int col_of(int i) { return i % (count / rows) * wide + lane() % wide; }
  MINDPIPE_DEVICE void clear() {
    MINDPIPE_UNROLL
    for (float& x : value) x = 0;
  }
  /// right[j][0..3] = four depths of this lane's j-th column
  MINDPIPE_DEVICE void multiply(const float* a, int a_pitch, const float (&right)[count / rows][4]) {
    MINDPIPE_UNROLL
    for (int r = 0; r < rows; ++r) {
      const float4 left = *reinterpret_cast<const float4*>(a + row_of(r * (count / rows)) * a_pitch);
      MINDPIPE_UNROLL
      for (int j = 0; j < count / rows; ++j) {
        float& c = value[r * (count / rows) + j];
        c = fmaf(left.w, right[j][3],
                 fmaf(left.z, right[j][2], fmaf(left.y, right[j][1], fmaf(left.x, right[j][0], c))));
      }
    }
  }
  template <int depth>
  MINDPIPE_DEVICE void add_rows(const float* a, int a_pitch, const float* b, int b_pitch) {
    MINDPIPE_UNROLL_4
    for (int d = 0; d < depth; d += 4) {
      float right[count / rows][4];
      MINDPIPE_UNROLL
      for (int j = 0; j < count / rows; ++j) {
        const float4 four = *reinterpret_cast<const float4*>(b + col_of(j) * b_pitch + d);
        right[j][0] = four.x;
        right[j][1] = four.y;
        right[j][2] = four.z;
        right[j][3] = four.w;
      }
      multiply(a + d, a_pitch, right);
    }
  }
  template <int depth>
  MINDPIPE_DEVICE void add_cols(const float* a, int a_pitch, const float* b, int b_pitch) {
    MINDPIPE_UNROLL_4
    for (int d = 0; d < depth; d += 4) {
      float right[count / rows][4];
      MINDPIPE_UNROLL
      for (int j = 0; j < count / rows; ++j) MINDPIPE_UNROLL
      for (int s = 0; s < 4; ++s) right[j][s] = b[(d + s) * b_pitch + col_of(j)];
      multiply(a + d, a_pitch, right);
    }
  }
};

/// How the warps of a block share a tile of `rows` x cols: sixteen rows and an equal part of the columns
/// each.
template <int rows>
struct WarpGrid {
  static_assert(rows % 16 == 0 && block_warps % (rows / 16) == 0);
  static constexpr int down = rows / 16, across = block_warps / down;
  static MINDPIPE_DEVICE int first_row() { return warp() % down * 16; }
  static MINDPIPE_DEVICE int first_col(int cols) { return warp() / down * (cols / across); }
};

/// c[rows][cols] of a block: the sums of all its warps.
template <class T, int rows, int cols>
struct BlockSums {
  using Warp = WarpSums<T, cols / WarpGrid<rows>::across>;
  Warp own;

  MINDPIPE_DEVICE void clear() { own.clear(); }
  /// += a[rows][depth] b[cols][depth]^T
  template <int depth>
  MINDPIPE_DEVICE void add_rows(const T (&a)[rows][depth + tile_pad<T>],
                                const T (&b)[cols][depth + tile_pad<T>]) {
    own.template add_rows<depth>(a[WarpGrid<rows>::first_row()], depth + tile_pad<T>,
                                 b[WarpGrid<rows>::first_col(cols)], depth + tile_pad<T>);
  }
  /// += a[rows][depth] b[depth][cols]
  template <int depth>
  MINDPIPE_DEVICE void add_cols(const T (&a)[rows][depth + tile_pad<T>],
                                const T (&b)[depth][cols + tile_pad<T>]) {
    own.template add_cols<depth>(a[WarpGrid<rows>::first_row()], depth + tile_pad<T>,
                                 b[0] + WarpGrid<rows>::first_col(cols), cols + tile_pad<T>);
  }
  /// visit(row, col, value) of every element that this thread holds
  template <class Visit>
  MINDPIPE_DEVICE void each(const Visit& visit) {
    each(*this, [&](int row, int col, float& value, float&) { visit(row, col, value); });
  }
  /// visit(row, col, value, other) beside sums of the same extents
  template <class Visit>
  MINDPIPE_DEVICE void each(BlockSums& other, const Visit& visit) {
    const int row = WarpGrid<rows>::first_row(), col = WarpGrid<rows>::first_col(cols);
    MINDPIPE_UNROLL
    for (int e = 0; e < Warp::count; ++e)
      visit(row + Warp::row_of(e), col + Warp::col_of(e), own.value[e], other.own.value[e]);
  }
};

}  // namespace mindpipe::cuda::flash
