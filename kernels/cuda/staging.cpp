#include "cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "cuda/error.h"

namespace mindpipe::cuda {

Staging::Staging() {
  for (auto& event : copied_) MP_CUDA(cudaEventCreateWithFlags(event.receive(), cudaEventDisableTiming));
}

/// The next block, once the copy that used it last is over; an event that was never recorded counts as over.
std::size_t Staging::take() {
  const std::size_t block = next_;
  next_ = (next_ + 1) % blocks;
  MP_CUDA(cudaEventSynchronize(copied_[block].get()));
  return block;
}

void Staging::upload(const void* host, void* device, std::size_t bytes, cudaStream_t stream) {
  for (std::size_t done = 0; done < bytes; done += block_bytes) {
    const std::size_t here = std::min(block_bytes, bytes - done), block = take();
    void* pinned = arena_.address_of(block * block_bytes);
    std::memcpy(pinned, static_cast<const std::byte*>(host) + done, here);
    MP_CUDA(cudaMemcpyAsync(static_cast<std::byte*>(device) + done, pinned, here, cudaMemcpyDefault, stream));
    MP_CUDA(cudaEventRecord(copied_[block].get(), stream));
  }
}

void Staging::download(const void* device, void* host, std::size_t bytes, cudaStream_t stream) {
  const auto fetch = [&](std::size_t done) {
    const std::size_t block = take();
    MP_CUDA(cudaMemcpyAsync(arena_.address_of(block * block_bytes),
                            static_cast<const std::byte*>(device) + done, std::min(block_bytes, bytes - done),
                            cudaMemcpyDefault, stream));
    MP_CUDA(cudaEventRecord(copied_[block].get(), stream));
    return block;
  };
  std::size_t ahead = bytes == 0 ? 0 : fetch(0);
  for (std::size_t done = 0; done < bytes; done += block_bytes) {
    const std::size_t block = ahead;
    if (done + block_bytes < bytes)
      ahead = fetch(done + block_bytes);  // is under way while this part is taken out
    MP_CUDA(cudaEventSynchronize(copied_[block].get()));
    std::memcpy(static_cast<std::byte*>(host) + done, arena_.address_of(block * block_bytes),
                std::min(block_bytes, bytes - done));
  }
}

}  // namespace mindpipe::cuda
