#pragma once
#include "cuda/device/block_memory.h"
#include "cuda/device/flash_tile.h"
#include "cuda/launch.h"

/// Starting a kernel with shared memory of its own size.
namespace mindpipe::cuda::flash {

/// Starts a kernel whose blocks work in `Shared`, one for each tile, head and sample.
template <class Shared>
cudaError_t start(void (*kernel)(AttentionCall, bool), std::int64_t tiles, std::int64_t heads,
                  const AttentionCall& call, bool sixteens, cudaStream_t stream) {
  if (call.samples == 0) return cudaSuccess;
  cudaError_t answer = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(sizeof(Shared)));
  if (answer != cudaSuccess) return answer;
  launch(stream, Grid{tiles, block_threads, heads, call.samples, sizeof(Shared)}, kernel, call, sixteens);
  return cudaGetLastError();
}

template <class Shared>
MINDPIPE_DEVICE Shared& shared() {
  return *block_memory<Shared>();
}

}  // namespace mindpipe::cuda::flash
