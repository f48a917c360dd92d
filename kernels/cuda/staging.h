#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "core/handle.h"
#include "core/memory.h"
#include "cuda/queues.h"

namespace mindpipe::cuda {

/// Bytes between ordinary host memory and the device, through blocks of pinned memory that are taken in turn:
/// the copy engine reads and writes these only, so `upload` may return before its bytes have arrived.
class Staging {
 public:
  Staging();
  void upload(const void* host, void* device, std::size_t bytes, cudaStream_t stream);
  void download(const void* device, void* host, std::size_t bytes, cudaStream_t stream);  ///< waits

 private:
  static constexpr std::size_t blocks = 8, block_bytes = std::size_t{4} << 20;
  std::size_t take();

  Memory memory_{Memory::Kind::pinned};
  Arena arena_{memory_, MemoryClass::workspace, blocks* block_bytes};
  std::array<Handle<EventTraits>, blocks> copied_;  ///< behind the last copy from or to the block
  std::size_t next_ = 0;
};

}  // namespace mindpipe::cuda
