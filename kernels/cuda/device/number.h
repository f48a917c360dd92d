#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

/// Numbers in device code. Everything in cuda/device is plain C++ but for the words of the CUDA runtime, and
/// each element is computed by the same instructions wherever it lies: products are fused only where
/// `multiply_add` says so.
namespace mindpipe::cuda {

using std::int64_t;

struct bf16 {
  std::uint16_t bits;
};

/// What a number is computed in: itself, and f32 for bf16.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

__device__ inline double widen(double x) { return x; }
__device__ inline int64_t widen(int64_t x) { return x; }
__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16); }

/// Rounds to the nearest, ties to even; a NaN stays one.
__device__ inline bf16 to_bf16(float x) {
#ifdef __CUDA_ARCH__
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
#else
  const std::uint32_t bits = __float_as_uint(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded)};
#endif
}
/// Two at once, the first in the lower half.
__device__ inline std::uint32_t to_bf16_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<std::uint32_t>(to_bf16(low).bits) | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
#endif
}
__device__ inline void put(double& y, double x) { y = x; }
__device__ inline void put(double& y, float x) { y = x; }
__device__ inline void put(int64_t& y, int64_t x) { y = x; }
__device__ inline void put(float& y, double x) { y = static_cast<float>(x); }
__device__ inline void put(float& y, float x) { y = x; }
__device__ inline void put(bf16& y, double x) { y = to_bf16(static_cast<float>(x)); }
__device__ inline void put(bf16& y, float x) { y = to_bf16(x); }

/// What `x` is after it has been stored as a T.
template <class T>
__device__ inline Wide<T> rounded(Wide<T> x) {
  T y;
  put(y, x);
  return widen(y);
}

__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float square_root(float x) { return sqrtf(x); }
__device__ inline double square_root(double x) { return sqrt(x); }

/// An exponent of all ones.
__device__ inline bool not_finite(double x) {
  return (static_cast<std::uint64_t>(__double_as_longlong(x)) & 0x7ff0000000000000u) == 0x7ff0000000000000u;
}
__device__ inline bool not_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

/// The bits of a number as a word.
__device__ inline std::uint64_t word_of(double x) {
  return static_cast<std::uint64_t>(__double_as_longlong(x));
}
__device__ inline std::uint64_t word_of(float x) { return __float_as_uint(x); }

/// Calls work(number) with a number of this type: 0 is f64, 1 f32, 2 bf16 (dtype_index).
template <class Work>
void with_number(int type, const Work& work) {
  if (type == 0) work(double{});
  else if (type == 1) work(float{});
  else work(bf16{});
}

}  // namespace mindpipe::cuda
