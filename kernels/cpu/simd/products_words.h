#pragma once
#include <cstring>

#include "cpu/simd/vector.h"

/// A packed factor of a product consists of words of 32 bits. A class of words says what a word holds, how
/// words are read from a factor, and how a word of a meets sixteen of b.
namespace mindpipe::MINDPIPE_ISA::products {

struct MultiplyAdd {
  static MINDPIPE_INLINE Vector meet(Vector a, Vector b, Vector sum) { return multiply_add(a, b, sum); }
  static MINDPIPE_INLINE FloatPart meet(FloatPart a, FloatPart b, FloatPart sum) {
#if MINDPIPE_ISA_LEVEL >= 1
    return MINDPIPE_MM(fmadd_ps)(a, b, sum);
#else
    return MINDPIPE_MM(add_ps)(MINDPIPE_MM(mul_ps)(a, b), sum);
#endif
  }
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
  static MINDPIPE_INLINE FloatPart meet(FloatPart a, FloatPart b, FloatPart sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    return sum;
  }
  static MINDPIPE_INLINE Vector meet(Vector a, Vector b, Vector sum) {
    return {{meet(a.part[0], b.part[0], sum.part[0])}};
  }
  /// Two vectors rounded to bf16, one behind the other; denormal numbers become zero.
  static MINDPIPE_INLINE __m512i halves(Vector low, Vector high) {
    __m512i rounded;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(rounded) : "v"(high.part[0]), "v"(low.part[0]));
    return rounded;
  }
  /// Words of which each has a lane of `low` and the same of `high`, rounded.
  static MINDPIPE_INLINE Vector pair(Vector low, Vector high) {
    alignas(64) static constexpr std::uint16_t by_turns[2 * lanes] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return {{_mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(by_turns), halves(low, high)))}};
  }
  static MINDPIPE_INLINE void store_halves(std::uint16_t* to, Vector x) {
    __m256i halves;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(x.part[0]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
  }
};
#endif

/// Denormal numbers become zeros of their sign.
MINDPIPE_INLINE Vector flushed(Vector x) {
  const Vector size = floats_of_bits(bits_of(x) & broadcast_integer(INT32_MAX)),
               sign = floats_of_bits(bits_of(x) & broadcast_integer(INT32_MIN));
  return select(less(size, broadcast(0x1p-126f)), sign, x);
}

}  // namespace mindpipe::MINDPIPE_ISA::products
