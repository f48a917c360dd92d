#pragma once
#include <cuda_runtime.h>

#include "cuda/device/device_function.h"

/// A block of threads, as the kernels of attention see it: 256 threads in warps of 32.
namespace mindpipe::cuda::flash {

inline constexpr int block_threads = 256, block_warps = 8, lanes = 32;

MINDPIPE_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
MINDPIPE_DEVICE int lane() { return thread() % 32; }
MINDPIPE_DEVICE int warp() { return thread() / 32; }
/// The sum, or the largest, over the lanes of a warp: a butterfly, the same on every lane.
MINDPIPE_DEVICE float warp_sum(float x) {
  MINDPIPE_UNROLL
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
MINDPIPE_DEVICE float warp_maximum(float x) {
  MINDPIPE_UNROLL
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// bf16 is stored as its bits, as on the CPU.
using Bf16 = std::uint16_t;
MINDPIPE_DEVICE float widen(float x) { return x; }
MINDPIPE_DEVICE float widen(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}
/// Rounds to the nearest, ties to even; NaN stays NaN.
MINDPIPE_DEVICE void put(float& to, float x) { to = x; }
MINDPIPE_DEVICE void put(Bf16& to, float x) {
  std::uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  to = x != x ? static_cast<Bf16>(bits >> 16 | 0x40u)
              : static_cast<Bf16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace mindpipe::cuda::flash
