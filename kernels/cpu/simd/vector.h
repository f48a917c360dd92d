#pragma once
// g++ 12 warns of its own deliberately undefined operands in this header.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <cstring>

#ifndef MINDPIPE_ISA
#error "cpu/simd is compiled once per instruction set: see cpu/isa.h"
#endif

#define MINDPIPE_INLINE inline __attribute__((always_inline))

// The same intrinsics at three widths: MINDPIPE_MM(add_ps) is _mm512_add_ps, _mm256_add_ps or _mm_add_ps.
#if MINDPIPE_ISA_LEVEL == 2
#define MINDPIPE_MM(name) _mm512_##name
#define MINDPIPE_SI(name) _mm512_##name##_si512
#elif MINDPIPE_ISA_LEVEL == 1
#define MINDPIPE_MM(name) _mm256_##name
#define MINDPIPE_SI(name) _mm256_##name##_si256
#else
#define MINDPIPE_MM(name) _mm_##name
#define MINDPIPE_SI(name) _mm_##name##_si128
#endif

namespace mindpipe::MINDPIPE_ISA {

/// How many floats a Vector holds, on every instruction set: so that orders of sums are the same everywhere.
constexpr int lanes = 16;

// Registers, of which a vector has one or more.
#if MINDPIPE_ISA_LEVEL == 2
using FloatPart = __m512;
using IntegerPart = __m512i;
using MaskPart = __mmask16;
#elif MINDPIPE_ISA_LEVEL == 1
using FloatPart = __m256;
using IntegerPart = __m256i;
using MaskPart = __m256;
#else
using FloatPart = __m128;
using IntegerPart = __m128i;
using MaskPart = __m128;
#endif
constexpr int part_lanes = sizeof(FloatPart) / sizeof(float);
constexpr int parts = lanes / part_lanes;

/// Sixteen floats.
struct Vector {
  FloatPart part[parts];
};
/// Sixteen 32-bit integers.
struct Integers {
  IntegerPart part[parts];
};
/// Sixteen answers.
struct Mask {
  MaskPart part[parts];
};

#define MINDPIPE_BINARY(Type, name, intrinsic)                                   \
  MINDPIPE_INLINE Type name(Type a, Type b) {                                    \
    for (int i = 0; i < parts; ++i) a.part[i] = intrinsic(a.part[i], b.part[i]); \
    return a;                                                                    \
  }
MINDPIPE_BINARY(Vector, operator+, MINDPIPE_MM(add_ps))
MINDPIPE_BINARY(Vector, operator-, MINDPIPE_MM(sub_ps))
MINDPIPE_BINARY(Vector, operator*, MINDPIPE_MM(mul_ps))
MINDPIPE_BINARY(Vector, operator/, MINDPIPE_MM(div_ps))
MINDPIPE_BINARY(Vector, max, MINDPIPE_MM(max_ps))  // a > b ? a : b, so a NaN in b stays
MINDPIPE_BINARY(Vector, min, MINDPIPE_MM(min_ps))  // a < b ? a : b, so a NaN in b stays
MINDPIPE_BINARY(Integers, operator+, MINDPIPE_MM(add_epi32))
MINDPIPE_BINARY(Integers, operator-, MINDPIPE_MM(sub_epi32))
MINDPIPE_BINARY(Integers, operator&, MINDPIPE_SI(and))
MINDPIPE_BINARY(Integers, operator|, MINDPIPE_SI(or))
MINDPIPE_BINARY(Integers, operator^, MINDPIPE_SI(xor))
#undef MINDPIPE_BINARY

MINDPIPE_INLINE Vector broadcast(float x) {
  Vector r;
  for (int i = 0; i < parts; ++i) r.part[i] = MINDPIPE_MM(set1_ps)(x);
  return r;
}
MINDPIPE_INLINE Integers broadcast_integer(std::int32_t x) {
  Integers r;
  for (int i = 0; i < parts; ++i) r.part[i] = MINDPIPE_MM(set1_epi32)(x);
  return r;
}
MINDPIPE_INLINE Vector zero() { return broadcast(0.0f); }

/// a * b + c: rounded once on avx2 and avx512, twice on the baseline, which has no such instruction.
MINDPIPE_INLINE Vector multiply_add(Vector a, Vector b, Vector c) {
#if MINDPIPE_ISA_LEVEL >= 1
  for (int i = 0; i < parts; ++i) a.part[i] = MINDPIPE_MM(fmadd_ps)(a.part[i], b.part[i], c.part[i]);
  return a;
#else
  return a * b + c;
#endif
}

// Integers and bits.
MINDPIPE_INLINE Integers bits_of(Vector a) {
  Integers r;
  static_assert(sizeof r == sizeof a);
  std::memcpy(&r, &a, sizeof r);
  return r;
}
MINDPIPE_INLINE Vector floats_of_bits(Integers a) {
  Vector r;
  std::memcpy(&r, &a, sizeof r);
  return r;
}
/// Rounds to the nearest integer, ties to even.
MINDPIPE_INLINE Integers to_integers(Vector a) {
  Integers r;
  for (int i = 0; i < parts; ++i) r.part[i] = MINDPIPE_MM(cvtps_epi32)(a.part[i]);
  return r;
}
MINDPIPE_INLINE Vector to_floats(Integers a) {
  Vector r;
  for (int i = 0; i < parts; ++i) r.part[i] = MINDPIPE_MM(cvtepi32_ps)(a.part[i]);
  return r;
}
template <int count>
MINDPIPE_INLINE Integers shift_left(Integers a) {
  for (int i = 0; i < parts; ++i) a.part[i] = MINDPIPE_MM(slli_epi32)(a.part[i], count);
  return a;
}
template <int count>  ///< zeros come in from the left
MINDPIPE_INLINE Integers shift_right(Integers a) {
  for (int i = 0; i < parts; ++i) a.part[i] = MINDPIPE_MM(srli_epi32)(a.part[i], count);
  return a;
}
template <int count>  ///< the sign comes in from the left
MINDPIPE_INLINE Integers shift_right_signed(Integers a) {
  for (int i = 0; i < parts; ++i) a.part[i] = MINDPIPE_MM(srai_epi32)(a.part[i], count);
  return a;
}
MINDPIPE_INLINE Vector negate(Vector a) { return floats_of_bits(bits_of(a) ^ broadcast_integer(INT32_MIN)); }

// Comparisons: false where an operand is NaN, except not_a_number.
#if MINDPIPE_ISA_LEVEL == 2
#define MINDPIPE_COMPARE_PART(a, b, predicate, intrinsic) _mm512_cmp_ps_mask(a, b, predicate)
#elif MINDPIPE_ISA_LEVEL == 1
#define MINDPIPE_COMPARE_PART(a, b, predicate, intrinsic) _mm256_cmp_ps(a, b, predicate)
#else
#define MINDPIPE_COMPARE_PART(a, b, predicate, intrinsic) intrinsic(a, b)
#endif
#define MINDPIPE_COMPARE(name, predicate, intrinsic)                                 \
  MINDPIPE_INLINE Mask name(Vector a, Vector b) {                                    \
    Mask r;                                                                          \
    for (int i = 0; i < parts; ++i)                                                  \
      r.part[i] = MINDPIPE_COMPARE_PART(a.part[i], b.part[i], predicate, intrinsic); \
    return r;                                                                        \
  }
MINDPIPE_COMPARE(less, _CMP_LT_OQ, _mm_cmplt_ps)
MINDPIPE_COMPARE(greater, _CMP_GT_OQ, _mm_cmpgt_ps)
MINDPIPE_COMPARE(equal, _CMP_EQ_OQ, _mm_cmpeq_ps)
MINDPIPE_COMPARE(unordered, _CMP_UNORD_Q, _mm_cmpunord_ps)
#undef MINDPIPE_COMPARE
#undef MINDPIPE_COMPARE_PART
MINDPIPE_INLINE Mask not_a_number(Vector a) { return unordered(a, a); }

MINDPIPE_INLINE Mask operator|(Mask a, Mask b) {
  for (int i = 0; i < parts; ++i) {
#if MINDPIPE_ISA_LEVEL == 2
    a.part[i] = static_cast<MaskPart>(a.part[i] | b.part[i]);
#else
    a.part[i] = MINDPIPE_MM(or_ps)(a.part[i], b.part[i]);
#endif
  }
  return a;
}

/// mask ? a : b
MINDPIPE_INLINE Vector select(Mask mask, Vector a, Vector b) {
  for (int i = 0; i < parts; ++i) {
#if MINDPIPE_ISA_LEVEL == 2
    a.part[i] = _mm512_mask_blend_ps(mask.part[i], b.part[i], a.part[i]);
#elif MINDPIPE_ISA_LEVEL == 1
    a.part[i] = _mm256_blendv_ps(b.part[i], a.part[i], mask.part[i]);
#else
    a.part[i] = _mm_or_ps(_mm_and_ps(mask.part[i], a.part[i]), _mm_andnot_ps(mask.part[i], b.part[i]));
#endif
  }
  return a;
}
MINDPIPE_INLINE Integers select(Mask mask, Integers a, Integers b) {
  return bits_of(select(mask, floats_of_bits(a), floats_of_bits(b)));
}
/// Lanes 0 .. count-1.
MINDPIPE_INLINE Mask first_lanes(int count) {
#if MINDPIPE_ISA_LEVEL == 2
  return {{static_cast<__mmask16>(count >= lanes ? 0xffffu : (1u << count) - 1)}};
#else
  alignas(64) static const std::int32_t ones_then_zeros[2 * lanes] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                                      -1, -1, -1, -1, -1, -1, -1, -1};
  Mask r;
  std::memcpy(&r, ones_then_zeros + lanes - (count > lanes ? lanes : count), sizeof r);
  return r;
#endif
}

// Memory: addresses need no alignment; the lanes beyond `count` of a partial load are zero.
MINDPIPE_INLINE Vector load(const float* from) {
  Vector r;
  for (int i = 0; i < parts; ++i) r.part[i] = MINDPIPE_MM(loadu_ps)(from + i * part_lanes);
  return r;
}
MINDPIPE_INLINE void store(float* to, Vector a) {
  for (int i = 0; i < parts; ++i) MINDPIPE_MM(storeu_ps)(to + i * part_lanes, a.part[i]);
}
/// store() to whole lines that nobody reads soon: they go to memory without being fetched from there. Others
/// may read them behind stream_end().
MINDPIPE_INLINE void stream(float* to, Vector a) {
  for (int i = 0; i < parts; ++i) MINDPIPE_MM(stream_ps)(to + i * part_lanes, a.part[i]);
}
MINDPIPE_INLINE void stream_end() { _mm_sfence(); }
MINDPIPE_INLINE Integers load(const std::int32_t* from) {
  Integers r;
  std::memcpy(&r, from, sizeof r);
  return r;
}
MINDPIPE_INLINE void store(std::int32_t* to, Integers a) { std::memcpy(to, &a, sizeof a); }
MINDPIPE_INLINE Vector load(const float* from, int count) {
#if MINDPIPE_ISA_LEVEL == 2
  return {{_mm512_maskz_loadu_ps(first_lanes(count).part[0], from)}};
#else
  alignas(64) float whole[lanes] = {};
  std::memcpy(whole, from, sizeof(float) * static_cast<unsigned>(count > lanes ? lanes : count));
  return load(whole);
#endif
}
MINDPIPE_INLINE void store(float* to, Vector a, int count) {
#if MINDPIPE_ISA_LEVEL == 2
  _mm512_mask_storeu_ps(to, first_lanes(count).part[0], a.part[0]);
#else
  alignas(64) float whole[lanes];
  store(whole, a);
  std::memcpy(to, whole, sizeof(float) * static_cast<unsigned>(count > lanes ? lanes : count));
#endif
}

// Bf16: the upper half of a float; stores round to nearest, ties to even, and keep NaN.
MINDPIPE_INLINE Vector load(const std::uint16_t* from) {
  Vector r;
#if MINDPIPE_ISA_LEVEL == 2
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  alignas(64) static constexpr std::uint16_t halves[2 * lanes] = {
      0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,  // each above a zero
      0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
  r.part[0] = _mm512_castsi512_ps(
      _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, _mm512_load_si512(halves), _mm512_castsi256_si512(half)));
#elif MINDPIPE_ISA_LEVEL == 1
  for (int i = 0; i < parts; ++i) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * part_lanes));
    r.part[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
#else
  for (int i = 0; i < parts; i += 2) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * part_lanes));
    r.part[i] = _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), half));
    r.part[i + 1] = _mm_castsi128_ps(_mm_unpackhi_epi16(_mm_setzero_si128(), half));
  }
#endif
  return r;
}
/// To the nearest bf16, ties to even, as f32; NaN stays.
MINDPIPE_INLINE Vector rounded_to_bf16(Vector a) {
  const Integers bits = bits_of(a);
  const Integers rounded = bits + broadcast_integer(0x7fff) + (shift_right<16>(bits) & broadcast_integer(1));
  return floats_of_bits(select(not_a_number(a), bits | broadcast_integer(0x400000), rounded) &
                        broadcast_integer(static_cast<std::int32_t>(0xffff0000u)));
}
MINDPIPE_INLINE void store(std::uint16_t* to, Vector a) {
  const Integers bits = bits_of(a);
  const Integers odd = shift_right<16>(bits) & broadcast_integer(1);
  const Integers rounded = bits + broadcast_integer(0x7fff) + odd;
  const Integers quiet = bits | broadcast_integer(0x400000);
#if MINDPIPE_ISA_LEVEL == 2
  alignas(64) static constexpr std::uint16_t upper_halves[2 * lanes] = {1,  3,  5,  7,  9,  11, 13, 15,
                                                                        17, 19, 21, 23, 25, 27, 29, 31};
  const __m512i all = select(not_a_number(a), quiet, rounded).part[0];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_load_si512(upper_halves), all)));
#else
  const Integers r = shift_right_signed<16>(select(not_a_number(a), quiet, rounded));
#endif
#if MINDPIPE_ISA_LEVEL == 1
  const __m256i packed = _mm256_packs_epi32(r.part[0], r.part[1]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(packed, 0xd8));
#elif MINDPIPE_ISA_LEVEL == 0
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packs_epi32(r.part[0], r.part[1]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), _mm_packs_epi32(r.part[2], r.part[3]));
#endif
}
MINDPIPE_INLINE Vector load(const std::uint16_t* from, int count) {
#if MINDPIPE_ISA_LEVEL == 2
  const __m256i half = _mm256_maskz_loadu_epi16(first_lanes(count).part[0], from);
  return {{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))}};
#else
  alignas(64) std::uint16_t whole[lanes] = {};
  std::memcpy(whole, from, sizeof(std::uint16_t) * static_cast<unsigned>(count > lanes ? lanes : count));
  return load(whole);
#endif
}
MINDPIPE_INLINE void store(std::uint16_t* to, Vector a, int count) {
  alignas(64) std::uint16_t whole[lanes];
  store(whole, a);
  std::memcpy(to, whole, sizeof(std::uint16_t) * static_cast<unsigned>(count > lanes ? lanes : count));
}

// Across lanes: always by the tree (i, i+8), (i, i+4), (i, i+2), (0, 1).
#if MINDPIPE_ISA_LEVEL == 2
#define MINDPIPE_TO_EIGHT(op, a)                                                                     \
  const __m256 low = _mm512_castps512_ps256(a.part[0]), high = _mm512_extractf32x8_ps(a.part[0], 1), \
               eight = _mm256_##op##_ps(low, high);                                                  \
  const __m128 four = _mm_##op##_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#elif MINDPIPE_ISA_LEVEL == 1
#define MINDPIPE_TO_EIGHT(op, a)                               \
  const __m256 eight = _mm256_##op##_ps(a.part[0], a.part[1]); \
  const __m128 four = _mm_##op##_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
#define MINDPIPE_TO_EIGHT(op, a) \
  const __m128 four = _mm_##op##_ps(_mm_##op##_ps(a.part[0], a.part[2]), _mm_##op##_ps(a.part[1], a.part[3]));
#endif
MINDPIPE_INLINE float sum(Vector a) {
  MINDPIPE_TO_EIGHT(add, a)
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
/// The largest lane; lanes must not be NaN.
MINDPIPE_INLINE float largest(Vector a) {
  MINDPIPE_TO_EIGHT(max, a)
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#undef MINDPIPE_TO_EIGHT

}  // namespace mindpipe::MINDPIPE_ISA
