#pragma once
#include <cstdint>

#include "cuda_runtime.h"

/// Kernels with mistakes in them, which the runtime on the host has to notice.
namespace planted {

constexpr int threads = 256;

enum class Mistake {
  none,
  read_before_barrier,
  write_before_barrier,
  barrier_of_warp_only,
  shuffle_for_a_barrier,
  lanes_write_before_barrier,
  two_writers,
  read_unwritten,
  barrier_for_some,
  other_instruction,
  beyond_shared_memory,
  unaligned,
};

/// Threads hand numbers to each other through shared memory: y[i] = x[i], for 256 threads with as many bytes
/// of dynamic shared memory. `at` is where thread 0 keeps its number.
__global__ void hand_over(Mistake mistake, const float* x, float* y, int at);

/// y[i] = 1 for i < count, where a mistake counts threads in 32 bits.
__global__ void fill_far(float* y, std::int64_t count, bool mistake);

__global__ void with_32_threads();
__global__ void with_96_threads();
__global__ void with_512_threads();
__global__ void with_any_threads();

}  // namespace planted
