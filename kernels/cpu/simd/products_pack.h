#pragma once
#include "cpu/products.h"
#include "cpu/simd/transpose.h"

/// Factors of a product copied into the order in which the register tile reads them, widened to f32.
namespace mindpipe::MINDPIPE_ISA::products {

/// to[i * to_stride + p] = a(i, p) for `rows` rows: what is contiguous stays so.
template <class T>
inline void pack_rows(const T* from, std::int64_t stride, int rows, int depth, float* to, int to_stride) {
  for (int i = 0; i < rows; ++i, from += stride, to += to_stride) {
    int p = 0;
    for (; p + lanes <= depth; p += lanes) store(to + p, load(from + p));
    if (p < depth) store(to + p, load(from + p, depth - p));
  }
}

/// to[p * to_stride + i] = a(i, p) of a depth-first factor, `count` <= to_stride elements of each depth. Writes whole vectors, ascending:
/// `to` has room for one more vector.
template <class T>
inline void pack_depths(const T* from, std::int64_t stride, int count, int depth, float* to, int to_stride) {
  for (int p = 0; p < depth; ++p, from += stride, to += to_stride)
    for (int i = 0; i < to_stride; i += lanes) {
      const int left = count - i;
      store(to + i, left >= lanes ? load(from + i) : left > 0 ? load(from + i, left) : zero());
    }
}

/// to[p * width + j] = b(j, p) for j < count, 0 for the other j < width: sixteen by sixteen through registers.
template <int width, class T>
inline void pack_transposed(const T* from, std::int64_t stride, int count, int depth, float* to) {
  static_assert(width % lanes == 0);
  for (int j = 0; j < width; j += lanes)
    for (int p = 0; p < depth; p += lanes) {
      const int deep = depth - p < lanes ? depth - p : lanes;
      Vector square[lanes];
      if (deep == lanes && j + lanes <= count) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) square[i] = load(from + (j + i) * stride + p);
      } else {
        for (int i = 0; i < lanes; ++i) square[i] = j + i < count ? load(from + (j + i) * stride + p, deep) : zero();
      }
      transpose(square);
      float* target = to + static_cast<std::int64_t>(p) * width + j;
      if (deep == lanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) store(target + i * width, square[i]);
      } else {
        for (int i = 0; i < deep; ++i) store(target + i * width, square[i]);
      }
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::products
