#pragma once
#include "cpu/simd/products_pack.h"

/// Products of a few rows, as in generation, read the other factor in place: packing it would cost more.
namespace mindpipe::MINDPIPE_ISA::products {

constexpr int thin_rows = 4;
template <class Words>
constexpr int square_depths =
    lanes * 4 / sizeof(typename Words::Value);  ///< a lane of the square that is turned holds 32 bits

/// sum[i] is a chain over `words` words of a(i) and b(j), lane j for row j of b, by whole squares.
template <int rows, class Words>
MINDPIPE_INLINE void meet_square(const float* a, int a_stride, const typename Words::Value* b,
                                 std::int64_t stride, int words, Vector* sum) {
  Vector square[lanes];
#pragma GCC unroll 16
  for (int j = 0; j < lanes; ++j) square[j] = load(reinterpret_cast<const float*>(b + j * stride));
  transpose(square);
  const auto meet = [&](int s, Vector turned) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i)
      sum[i] = Words::Arithmetic::meet(broadcast(a[i * a_stride + s]), turned, sum[i]);
  };
  constexpr bool halves = sizeof(typename Words::Value) == 2 && Words::depths == 1;  // of a lane are words
#pragma GCC unroll 32
  for (int s = 0; s < words; ++s) {
    if constexpr (!halves) meet(s, square[s]);
    else if (s % 2 == 0) meet(s, floats_of_bits(shift_left<16>(bits_of(square[s / 2]))));
    else
      meet(s, floats_of_bits(bits_of(square[s / 2]) &
                             broadcast_integer(static_cast<std::int32_t>(0xffff0000u))));
  }
}

/// Multiplies as `multiply` does, over rows j < 16 vectors of b, which lie at b + j * stride.
template <int rows, int vectors, class Words>
void multiply_thin(const float* a, int a_stride, const typename Words::Value* b, std::int64_t stride,
                   int depth, float* tile, bool add) {
  using T = typename Words::Value;
  constexpr int whole = square_depths<Words>;
  Vector sum[vectors][rows];
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) sum[v][i] = zero();
  // The next tile's rows are asked for one after the other, as they lie in memory, into the second cache:
  // from memory this reads at 0.8 of a copy's rate, where lines asked for across the rows had 0.35.
  const T* next_row = b + vectors * lanes * stride;
  int next = 0;
  const auto fetch_next = [&]() __attribute__((always_inline)) {
    __builtin_prefetch(next_row + next, 0, 2);
    next += whole;
    if (next < depth) return;
    next = 0;
    next_row += stride;
  };
  for (int p = 0; p < depth; p += whole) {
    const int deep = depth - p < whole ? depth - p : whole;
    for (int v = 0; v < vectors; ++v) {
      const T* from = b + v * lanes * stride + p;
      const float* words_of_a = a + p / Words::depths;
      if (deep == whole) {
        for (int j = 0; j < lanes; ++j) fetch_next();
        meet_square<rows, Words>(words_of_a, a_stride, from, stride, words_of<Words>(whole), sum[v]);
      } else {
        alignas(64) T rest[lanes * whole] = {};
        for (int j = 0; j < lanes; ++j)
          std::memcpy(rest + j * whole, from + j * stride, static_cast<std::size_t>(deep) * sizeof(T));
        meet_square<rows, Words>(words_of_a, a_stride, rest, whole, words_of<Words>(deep), sum[v]);
      }
    }
  }
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) {
      float* to = tile + (i * vectors + v) * lanes;
      store(to, add ? load(to) + sum[v][i] : sum[v][i]);
    }
}

template <class Words>
using MultiplyThin = void (*)(const float*, int, const typename Words::Value*, std::int64_t, int, float*,
                              bool);
template <int vectors, class Words>
constexpr MultiplyThin<Words> thin_table[thin_rows] = {
    multiply_thin<1, vectors, Words>, multiply_thin<2, vectors, Words>, multiply_thin<3, vectors, Words>,
    multiply_thin<4, vectors, Words>};

}  // namespace mindpipe::MINDPIPE_ISA::products
