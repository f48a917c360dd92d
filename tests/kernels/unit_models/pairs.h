#pragma once
#include <cstring>

#include "cpu/simd/products_words.h"

namespace mindpipe::MINDPIPE_ISA::products {

/// A pair's product in plain C++, as the processors' manuals have it: a multiply-add of the second depths,
/// then one of the first; denormal numbers count as zero wherever they appear.
struct PairModel {
  template <class Floats>
  static __attribute__((noinline)) Floats meet(Floats a, Floats b, Floats sum) {
    constexpr int count = sizeof(Floats) / sizeof(float);
    float to[count];
    std::uint32_t of_a[count], of_b[count];
    std::memcpy(of_a, &a, sizeof a);
    std::memcpy(of_b, &b, sizeof b);
    std::memcpy(to, &sum, sizeof sum);
    for (int i = 0; i < count; ++i) {
      const float odd =
          flushed(__builtin_fmaf(value(of_a[i] & 0xffff0000u), value(of_b[i] & 0xffff0000u), flushed(to[i])));
      to[i] = flushed(__builtin_fmaf(value(of_a[i] << 16), value(of_b[i] << 16), odd));
    }
    std::memcpy(&sum, to, sizeof sum);
    return sum;
  }
  static MINDPIPE_INLINE Vector pair(Vector low, Vector high) {
    const Integers lower = bits_of(rounded_to_bf16(products::flushed(low))),
                   upper = bits_of(rounded_to_bf16(products::flushed(high)));
    return floats_of_bits(shift_right<16>(lower) | upper);
  }
  static MINDPIPE_INLINE void store_halves(std::uint16_t* to, Vector x) { store(to, products::flushed(x)); }

 private:
  static float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
  static float value(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return flushed(x);
  }
};

}  // namespace mindpipe::MINDPIPE_ISA::products
