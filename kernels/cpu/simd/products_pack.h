#pragma once
#include "cpu/simd/products_words.h"
#include "cpu/simd/transpose.h"

/// Factors of a product copied, as words of a unit, into the order in which the register tile reads them.
namespace mindpipe::MINDPIPE_ISA::products {

template <class Words>
constexpr int words_of(std::int64_t depth) {
  return static_cast<int>((depth + Words::depths - 1) / Words::depths);
}

/// to[i * to_stride + s] = word s of row i: what is contiguous stays so. Writes whole vectors, but none
/// begins behind the last word.
template <class Words>
inline void pack_rows(const typename Words::Value* from, std::int64_t stride, int rows, int depth, float* to,
                      int to_stride) {
  for (int i = 0; i < rows; ++i, from += stride, to += to_stride)
    for (int p = 0; p < depth; p += lanes * Words::depths)
      store(to + p / Words::depths, Words::along(from + p, depth - p));
}

/// to[s * width + j] = word s of row j for j < count, 0 for other j < width: by sixteens in registers.
template <class Words, int width>
inline void pack_transposed(const typename Words::Value* from, std::int64_t stride, int count, int depth,
                            float* to) {
  static_assert(width % lanes == 0);
  constexpr int whole = lanes * Words::depths;
  for (int j = 0; j < width; j += lanes)
    for (int p = 0; p < depth; p += whole) {
      const int deep = depth - p < whole ? depth - p : whole;
      Vector square[lanes];
      if (deep == whole && j + lanes <= count) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) {
          square[i] = Words::along(from + (j + i) * stride + p, whole);
          if constexpr (Words::depths > 1) __builtin_prefetch(from + (j + lanes + i) * stride + p);
        }
      } else {
        for (int i = 0; i < lanes; ++i)
          square[i] = j + i < count ? Words::along(from + (j + i) * stride + p, deep) : zero();
      }
      transpose(square);
      float* target = to + static_cast<std::int64_t>(p / Words::depths) * width + j;
      if (deep == whole) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i) store(target + i * width, square[i]);
      } else {
        for (int i = 0; i < words_of<Words>(deep); ++i) store(target + i * width, square[i]);
      }
    }
}

}  // namespace mindpipe::MINDPIPE_ISA::products
