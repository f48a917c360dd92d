#pragma once
#include <cuda_runtime.h>

namespace mindpipe::cuda {

/// The shared memory that a block was started with (Grid::shared_bytes), aligned to 16 bytes.
template <class T>
__device__ inline T* block_memory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char memory[];
  return reinterpret_cast<T*>(memory);
#else
  return reinterpret_cast<T*>(dynamic_shared_memory());
#endif
}

}  // namespace mindpipe::cuda
