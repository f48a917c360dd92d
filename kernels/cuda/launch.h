#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

/// Starting kernels: how many blocks cover how much work. Plain C++, to be tested without a GPU.
namespace mindpipe::cuda {

/// Blocks of `size` that cover `count`.
inline std::int64_t blocks_for(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// Blocks in up to three directions, of `threads` threads each.
struct Grid {
  std::int64_t x = 0;
  int threads = 0;
  std::int64_t y = 1, z = 1;
  std::size_t shared_bytes = 0;  ///< shared memory of a block beside what its kernel declares
};

/// Puts kernel(arguments...) into the stream, each as the kernel wants it; nothing where the grid is empty.
/// The runtime keeps what went wrong: the caller asks cudaGetLastError once, after all that it starts.
template <class... Wanted, class... Given>
void launch(cudaStream_t stream, const Grid& grid, void (*kernel)(Wanted...), Given... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  cudaLaunchKernelEx(&config, kernel, static_cast<Wanted>(arguments)...);
}

}  // namespace mindpipe::cuda
