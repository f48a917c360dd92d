#pragma once
#include "cpu/simd/products_pack.h"

/// Products of a few rows, as generation has them, read the other factor once and in place: packing it would
/// cost more than they do.
namespace mindpipe::MINDPIPE_ISA::products {

constexpr int thin_rows = 4;
template <class Unit>
constexpr int square_depths =
    lanes * 4 / sizeof(typename Unit::Value);  ///< a lane of the square that is turned holds 32 bits

/// sum[i] is a chain over the slots of a(i) and b(j), lane j for row j of b: `slots` of them, of whole
/// squares.
template <int rows, class Unit>
MINDPIPE_INLINE void meet_square(const float* a, int a_stride, const typename Unit::Value* b,
                                 std::int64_t stride, int slots, Vector* sum) {
  Vector square[lanes];
#pragma GCC unroll 16
  for (int j = 0; j < lanes; ++j) square[j] = load(reinterpret_cast<const float*>(b + j * stride));
  transpose(square);
  const auto meet = [&](int s, Vector turned) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i)
      sum[i] = Unit::Arithmetic::meet(broadcast(a[i * a_stride + s]), turned, sum[i]);
  };
  constexpr bool halves = sizeof(typename Unit::Value) == 2 && Unit::depths == 1;  // of a lane are slots
#pragma GCC unroll 32
  for (int s = 0; s < slots; ++s) {
    if constexpr (!halves) meet(s, square[s]);
    else if (s % 2 == 0) meet(s, floats_of_bits(shift_left<16>(bits_of(square[s / 2]))));
    else
      meet(s, floats_of_bits(bits_of(square[s / 2]) &
                             broadcast_integer(static_cast<std::int32_t>(0xffff0000u))));
  }
}

/// As `multiply` over rows j < 16 vectors of b, which lie at b + j * stride.
/// tile = (add ? tile : 0) + the chain over slots of a(i) and b(j); slot s of a(i) lies at a[i * a_stride +
/// s]
template <int rows, int vectors, class Unit>
void multiply_thin(const float* a, int a_stride, const typename Unit::Value* b, std::int64_t stride,
                   int depth, float* tile, bool add) {
  using T = typename Unit::Value;
  constexpr int whole = square_depths<Unit>;
  Vector sum[vectors][rows];
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) sum[v][i] = zero();
  for (int p = 0; p < depth; p += whole) {
    const int deep = depth - p < whole ? depth - p : whole;
    for (int v = 0; v < vectors; ++v) {
      const T* from = b + v * lanes * stride + p;
      const float* slots_of_a = a + p / Unit::depths;
      if (deep == whole) {  // the next tile's columns are on their way meanwhile
        for (int j = 0; j < lanes; ++j) __builtin_prefetch(from + (vectors * lanes + j) * stride);
        meet_square<rows, Unit>(slots_of_a, a_stride, from, stride, slots_of<Unit>(whole), sum[v]);
      } else {
        alignas(64) T rest[lanes * whole] = {};
        for (int j = 0; j < lanes; ++j)
          std::memcpy(rest + j * whole, from + j * stride, static_cast<std::size_t>(deep) * sizeof(T));
        meet_square<rows, Unit>(slots_of_a, a_stride, rest, whole, slots_of<Unit>(deep), sum[v]);
      }
    }
  }
  for (int v = 0; v < vectors; ++v)
    for (int i = 0; i < rows; ++i) {
      float* to = tile + (i * vectors + v) * lanes;
      store(to, add ? load(to) + sum[v][i] : sum[v][i]);
    }
}

template <class Unit>
using MultiplyThin = void (*)(const float*, int, const typename Unit::Value*, std::int64_t, int, float*,
                              bool);
template <int vectors, class Unit>
constexpr MultiplyThin<Unit> thin_table[thin_rows] = {
    multiply_thin<1, vectors, Unit>, multiply_thin<2, vectors, Unit>, multiply_thin<3, vectors, Unit>,
    multiply_thin<4, vectors, Unit>};

}  // namespace mindpipe::MINDPIPE_ISA::products
