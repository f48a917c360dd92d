#pragma once
#include <cstring>

#include "cpu/simd/vector.h"

/// A packed factor of a product consists of words of 32 bits. A class of words says what a word holds, how
/// words are read from a factor, and how a word of a meets sixteen of b.
namespace mindpipe::MINDPIPE_ISA::products {

struct MultiplyAdd {
  static MINDPIPE_INLINE Vector meet(Vector a, Vector b, Vector sum) { return multiply_add(a, b, sum); }
};

/// A word is one depth, widened to f32.
template <class T>
struct Singles {
  using Value = T;
  using Arithmetic = MultiplyAdd;
  static constexpr int depths = 1;
  /// Sixteen words of a row, zero from `depth` on.
  static MINDPIPE_INLINE Vector along(const T* row, int depth) {
    return depth >= lanes ? load(row) : load(row, depth);
  }
  /// A word of each of sixteen rows of a depth-first factor, zero from row `count` on.
  static MINDPIPE_INLINE Vector across(const T* row, std::int64_t, int, int count) {
    return count >= lanes ? load(row) : count > 0 ? load(row, count) : zero();
  }
};

/// A word is two neighbouring depths in bf16, the first in the lower half; zeros beyond the last depth.
struct PairWords {
  using Value = std::uint16_t;
  static constexpr int depths = 2;
  static MINDPIPE_INLINE Vector along(const std::uint16_t* row, int depth) {
    if (depth >= 2 * lanes) return load(reinterpret_cast<const float*>(row));
    alignas(64) std::uint16_t whole[2 * lanes] = {};
    std::memcpy(whole, row, static_cast<unsigned>(depth) * 2);
    return load(reinterpret_cast<const float*>(whole));
  }
  static MINDPIPE_INLINE Vector across(const std::uint16_t* row, std::int64_t stride, int depth, int count) {
    if (count <= 0 || depth <= 0) return zero();
    const auto read = [&](const std::uint16_t* from) {
      return bits_of(count >= lanes ? load(from) : load(from, count));
    };
    const Integers first = shift_right<16>(read(row));
    return floats_of_bits(depth > 1 ? first | read(row + stride) : first);
  }
};
template <class PairArithmetic>
struct Pairs : PairWords {
  using Arithmetic = PairArithmetic;
};

#if MINDPIPE_ISA_LEVEL == 2
/// A pair's product by the processor (AVX512_BF16), as an instruction: the compiler's flags leave it out.
struct PairInstruction {
  static MINDPIPE_INLINE Vector meet(Vector a, Vector b, Vector sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.part[0]) : "v"(b.part[0]), "v"(a.part[0]));
    return sum;
  }
};
#endif

/// A pair's product in plain C++, as the processors' manuals have it: a multiply-add of the second depths,
/// then one of the first; denormal numbers count as zero wherever they appear.
struct PairModel {
  static __attribute__((noinline)) Vector meet(Vector a, Vector b, Vector sum) {
    float to[lanes];
    std::uint32_t of_a[lanes], of_b[lanes];
    std::memcpy(of_a, &a, sizeof a);
    std::memcpy(of_b, &b, sizeof b);
    store(to, sum);
    for (int i = 0; i < lanes; ++i) {
      const float odd =
          flushed(__builtin_fmaf(value(of_a[i] & 0xffff0000u), value(of_b[i] & 0xffff0000u), flushed(to[i])));
      to[i] = flushed(__builtin_fmaf(value(of_a[i] << 16), value(of_b[i] << 16), odd));
    }
    return load(to);
  }

 private:
  static float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
  static float value(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return flushed(x);
  }
};

}  // namespace mindpipe::MINDPIPE_ISA::products
