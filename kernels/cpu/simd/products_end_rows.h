#pragma once
#include "cpu/simd/products_end.h"

/// The end of products for sums that come as whole rows of two vectors: the activation and c's type are
/// chosen once for many rows, and a row of bf16 is one line of the cache.
namespace mindpipe::MINDPIPE_ISA::products {

/// Two vectors as bf16, rounded as store() does; on AVX-512 a whole line at once, of which what it held
/// before need not come from memory.
MINDPIPE_INLINE void store_pair(std::uint16_t* to, const Vector (&z)[2]) {
#if MINDPIPE_ISA_LEVEL == 2
  __m512i half[2];
  for (int v = 0; v < 2; ++v) {
    const Integers bits = bits_of(z[v]), odd = shift_right<16>(bits) & broadcast_integer(1),
                   rounded = bits + broadcast_integer(0x7fff) + odd,
                   quiet = bits | broadcast_integer(0x400000);
    half[v] = select(not_a_number(z[v]), quiet, rounded).part[0];
  }
  alignas(64) static constexpr std::uint16_t upper_halves[2 * lanes] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(half[0], _mm512_load_si512(upper_halves), half[1]));
#else
  store(to, z[0]);
  store(to + lanes, z[1]);
#endif
}

/// finish_tile() for `rows` whole rows of two vectors, one after the other from `sums` on, where c holds bf16
/// or, not `half`, f32. `add_old`: the sums come on top of what c has.
template <Activation activation, bool half>
void finish_rows(const Product& product, const float* sums, std::int64_t row, int rows, std::int64_t col,
                 bool add_old) {
  using Element = std::conditional_t<half, std::uint16_t, float>;
  constexpr int width = 2 * lanes;
  const bool biased = !product.backward && product.bias.data,
             keeps = !product.backward && activation != Activation::none && product.before.data,
             streams = !half && streams_c(product);
  Vector bias[2] = {zero(), zero()};
  if (biased)
    for (int v = 0; v < 2; ++v) bias[v] = load_from(product.bias, col + v * lanes, lanes);
  for (int i = 0; i < rows; ++i, sums += width) {
    const std::int64_t at = (row + i) * product.cols + col;
    Vector z[2] = {load(sums), load(sums + lanes)};
    if (add_old)
      for (int v = 0; v < 2; ++v)
        z[v] = load(static_cast<const Element*>(product.c.data) + at + v * lanes) + z[v];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      if (biased) z[v] = z[v] + bias[v];
      if (product.backward && activation != Activation::none)
        z[v] = z[v] * activation_derivative(activation, load_from(product.before, at + v * lanes, lanes));
    }
    if (keeps && product.before.bf16) {
      store_pair(static_cast<std::uint16_t*>(product.before.data) + at, z);
    } else if (keeps) {
      for (int v = 0; v < 2; ++v) store(static_cast<float*>(product.before.data) + at + v * lanes, z[v]);
    }
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      if (!product.backward) z[v] = activate(activation, z[v]);
    if constexpr (half) {
      store_pair(static_cast<std::uint16_t*>(product.c.data) + at, z);
    } else {
      auto* to = static_cast<float*>(product.c.data) + at;
      for (int v = 0; v < 2; ++v, to += lanes) streams ? stream(to, z[v]) : store(to, z[v]);
    }
  }
}

using FinishRows = void (*)(const Product&, const float* sums, std::int64_t row, int rows, std::int64_t col,
                            bool add_old);
template <bool half>
FinishRows choose_finish_rows(Activation activation) {
  if (activation == Activation::relu) return finish_rows<Activation::relu, half>;
  if (activation == Activation::gelu) return finish_rows<Activation::gelu, half>;
  if (activation == Activation::silu) return finish_rows<Activation::silu, half>;
  if (activation == Activation::gelu_exact) return finish_rows<Activation::gelu_exact, half>;
  return finish_rows<Activation::none, half>;
}
inline FinishRows choose_finish_rows(const Product& product) {
  return product.c.bf16 ? choose_finish_rows<true>(product.activation)
                        : choose_finish_rows<false>(product.activation);
}

}  // namespace mindpipe::MINDPIPE_ISA::products
