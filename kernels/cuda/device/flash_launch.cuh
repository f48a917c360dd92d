#pragma once
#include <cuda_runtime.h>

#include "cuda/device/flash_tile.h"

/// What only nvcc understands: starting a kernel with shared memory of its own size.
namespace mindpipe::cuda::flash {

/// Starts a kernel whose blocks work in `Shared`, one for each tile, head and sample.
template <class Shared>
cudaError_t start(void (*kernel)(AttentionCall, bool), std::int64_t tiles, std::int64_t heads,
                  const AttentionCall& call, bool sixteens, cudaStream_t stream) {
  if (call.samples == 0) return cudaSuccess;
  cudaError_t answer = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(sizeof(Shared)));
  if (answer != cudaSuccess) return answer;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(heads),
                  static_cast<unsigned>(call.samples));
  kernel<<<grid, block_threads, sizeof(Shared), stream>>>(call, sixteens);
  return cudaGetLastError();
}

template <class Shared>
MINDPIPE_DEVICE Shared& shared() {
  extern __shared__ __align__(16) unsigned char memory[];
  return *reinterpret_cast<Shared*>(memory);
}

}  // namespace mindpipe::cuda::flash
