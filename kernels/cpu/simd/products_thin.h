#pragma once
#include "cpu/simd/transpose.h"

/// Products of a few rows, as generation has them, read the other factor once and in place: packing it would cost more than they do.
namespace mindpipe::MINDPIPE_ISA::products {

constexpr int thin_rows = 4;
template <class T>
constexpr int square_depths = lanes * 4 / sizeof(T);  ///< a lane of the square that is turned holds one f32 or two bf16

/// sum[i] is a chain over a(i, q) b(j, q), q < deep, with lane j for row j of b; those are whole squares, however many depths count.
template <int rows, class T>
MINDPIPE_INLINE void meet_square(const float* a, int a_stride, const T* b, std::int64_t stride, int deep, Vector* sum) {
  Vector square[lanes];
#pragma GCC unroll 16
  for (int j = 0; j < lanes; ++j) square[j] = load(reinterpret_cast<const float*>(b + j * stride));
  transpose(square);
  const auto meet = [&](int q, Vector turned) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) sum[i] = multiply_add(broadcast(a[i * a_stride + q]), turned, sum[i]);
  };
#pragma GCC unroll 32
  for (int q = 0; q < deep; ++q) {
    if constexpr (sizeof(T) == 4) meet(q, square[q]);
    else if (q % 2 == 0) meet(q, floats_of_bits(shift_left<16>(bits_of(square[q / 2]))));
    else meet(q, floats_of_bits(bits_of(square[q / 2]) & broadcast_integer(static_cast<std::int32_t>(0xffff0000u))));
  }
}

/// As `multiply` over b(j, p) = b[j * stride + p] for j < 16 vectors.
/// tile = (add ? tile : 0) + sum over p < depth of a(i, p) b(j, p); a(i, p) lies at a[i * a_stride + p]
template <int rows, int vectors, class T>
void multiply_thin(const float* a, int a_stride, const T* b, std::int64_t stride, int depth, float* tile, bool add) {
  constexpr int whole = square_depths<T>;
  Vector sum[vectors][rows];
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) sum[v][i] = zero();
  for (int p = 0; p < depth; p += whole) {
    const int deep = depth - p < whole ? depth - p : whole;
    for (int v = 0; v < vectors; ++v) {
      const T* from = b + v * lanes * stride + p;
      if (deep == whole) {  // the next tile's columns are on their way meanwhile
        for (int j = 0; j < lanes; ++j) __builtin_prefetch(from + (vectors * lanes + j) * stride);
        meet_square<rows>(a + p, a_stride, from, stride, whole, sum[v]);
      } else {
        alignas(64) T rest[lanes * whole] = {};
        for (int j = 0; j < lanes; ++j) std::memcpy(rest + j * whole, from + j * stride, static_cast<std::size_t>(deep) * sizeof(T));
        meet_square<rows>(a + p, a_stride, rest, whole, deep, sum[v]);
      }
    }
  }
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) {
      float* to = tile + (i * vectors + v) * lanes;
      store(to, add ? load(to) + sum[v][i] : sum[v][i]);
    }
}

template <class T>
using MultiplyThin = void (*)(const float*, int, const T*, std::int64_t, int, float*, bool);
template <int vectors, class T>
constexpr MultiplyThin<T> thin_table[thin_rows] = {multiply_thin<1, vectors, T>, multiply_thin<2, vectors, T>, multiply_thin<3, vectors, T>,
                                                   multiply_thin<4, vectors, T>};

}  // namespace mindpipe::MINDPIPE_ISA::products
