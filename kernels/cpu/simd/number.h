#pragma once
#include <cstdint>

namespace mindpipe::MINDPIPE_ISA {

using bf16 = std::uint16_t;  ///< the upper half of an f32

inline double widen(double x) { return x; }
inline float widen(float x) { return x; }
inline float widen(bf16 x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x) << 16); }
/// What a number is computed in: itself, and f32 for bf16.
template <class T>
using Wide = decltype(widen(T()));

/// Rounds to the nearest, ties to even; a NaN stays one.
inline bf16 to_bf16(float x) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<bf16>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}
inline void put(double& y, double x) { y = x; }
inline void put(float& y, double x) { y = static_cast<float>(x); }
inline void put(float& y, float x) { y = x; }
inline void put(double& y, float x) { y = x; }
inline void put(bf16& y, float x) { y = to_bf16(x); }
inline void put(bf16& y, double x) { y = to_bf16(static_cast<float>(x)); }
inline double square_root(double x) { return __builtin_sqrt(x); }
inline float square_root(float x) { return __builtin_sqrtf(x); }

}  // namespace mindpipe::MINDPIPE_ISA
