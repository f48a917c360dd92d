#pragma once
#include "cpu/simd/products_units.h"
#include "cpu/simd/transpose.h"

/// Factors of a product copied, as slots of a unit, into the order in which the register tile reads them.
namespace mindpipe::MINDPIPE_ISA::products {

template <class Unit>
constexpr int slots_of(std::int64_t depth) {
  return static_cast<int>((depth + Unit::depths - 1) / Unit::depths);
}

/// to[i * to_stride + s] = slot s of row i: what is contiguous stays so. Writes whole vectors, but none
/// begins behind the last slot.
template <class Unit>
inline void pack_rows(const typename Unit::Value* from, std::int64_t stride, int rows, int depth, float* to,
                      int to_stride) {
  for (int i = 0; i < rows; ++i, from += stride, to += to_stride)
    for (int p = 0; p < depth; p += lanes * Unit::depths)
      store(to + p / Unit::depths, Unit::along(from + p, depth - p));
}

/// to[s * width + j] = slot s of row j for j < count, 0 for the other j < width: sixteen by sixteen through
/// registers.
template <class Unit, int width>
inline void pack_transposed(const typename Unit::Value* from, std::int64_t stride, int count, int depth,
                            float* to) {
  static_assert(width % lanes == 0);
  constexpr int whole = lanes * Unit::depths;
  for (int j = 0; j < width; j += lanes)
    for (int p = 0; p < depth; p += whole) {
      const int deep = depth - p < whole ? depth - p : whole;
      Vector square[lanes];
      if (deep == whole && j + lanes <= count) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) square[i] = Unit::along(from + (j + i) * stride + p, whole);
      } else {
        for (int i = 0; i < lanes; ++i)
          square[i] = j + i < count ? Unit::along(from + (j + i) * stride + p, deep) : zero();
      }
      transpose(square);
      float* target = to + static_cast<std::int64_t>(p / Unit::depths) * width + j;
      if (deep == whole) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) store(target + i * width, square[i]);
      } else {
        for (int i = 0; i < slots_of<Unit>(deep); ++i) store(target + i * width, square[i]);
      }
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::products
