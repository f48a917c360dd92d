#include "planted.h"

namespace planted {
namespace {

/// Each lane's number goes to its neighbour and back.
__device__ float by_neighbour(Mistake mistake, float x) {
  __shared__ float of_warp[threads];
  const int own = static_cast<int>(threadIdx.x), neighbour = own ^ 1;
  of_warp[own] = x;
  if (mistake == Mistake::shuffle_for_a_barrier) __shfl_xor_sync(~0u, x, 1);
  else __syncwarp();
  const float other = of_warp[neighbour];
  if (mistake != Mistake::lanes_write_before_barrier) __syncwarp();
  of_warp[own] = other;
  if (mistake == Mistake::other_instruction && own % 2 == 0) __shfl_xor_sync(~0u, x, 1);
  else __syncwarp();
  return of_warp[neighbour];
}

/// Four threads write the bytes of a word, and every thread reads those of the first two warps.
__device__ int sum_of_bytes(Mistake mistake) {
  unsigned char* bytes = dynamic_shared_memory();
  const int own = static_cast<int>(threadIdx.x);
  if (mistake != Mistake::read_unwritten || own != 7) bytes[own] = 1;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += bytes[i];
  if (mistake == Mistake::beyond_shared_memory && own == 3) sum += bytes[threads];
  return sum;
}

}  // namespace

__global__ void __launch_bounds__(threads) hand_over(Mistake mistake, const float* x, float* y, int at) {
  __shared__ float held[threads];
  const int own = static_cast<int>(threadIdx.x), other = threads - 1 - own;
  held[own] = x[own];
  if (mistake == Mistake::two_writers && own == 1) held[at] = x[at];
  if (mistake == Mistake::barrier_of_warp_only) __syncwarp();
  else if (mistake != Mistake::read_before_barrier) __syncthreads();
  const float taken = held[other];
  if (mistake != Mistake::write_before_barrier) __syncthreads();
  held[own] = taken;
  __syncthreads();
  const float number = by_neighbour(mistake, held[other]);
  y[own] = number + static_cast<float>(sum_of_bytes(mistake) - 64);
  if (mistake == Mistake::unaligned && own == 0)
    *reinterpret_cast<uint2*>(y) = *reinterpret_cast<const uint2*>(x + 1);
  if (mistake == Mistake::barrier_for_some && own < 32) __syncthreads();
}

__global__ void fill_far(float* y, std::int64_t count, bool mistake) {
  const unsigned narrow = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t i = mistake ? narrow : static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = 1;
}

__global__ void __launch_bounds__(32) with_32_threads() {}
__global__ void __launch_bounds__(96) with_96_threads() {}
__global__ void __launch_bounds__(512) with_512_threads() {}
__global__ void with_any_threads() {}

}  // namespace planted
