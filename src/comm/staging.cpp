#include "comm/staging.h"

#include <bit>

namespace mindpipe {

/// Size of the block for `bytes`: a power of two, so that blocks fit again.
std::size_t Staging::block_bytes(std::size_t bytes) { return std::max(alignment, std::bit_ceil(bytes)); }

Staging::~Staging() {
  for (const auto& [bytes, blocks] : free_)
    for (void* block : blocks) pinned_.release(block, bytes, MemoryClass::workspace);
}

void* Staging::take(std::size_t bytes) {
  std::vector<void*>& blocks = free_[block_bytes(bytes)];
  if (blocks.empty()) return pinned_.allocate(block_bytes(bytes), MemoryClass::workspace);
  void* block = blocks.back();
  blocks.pop_back();
  return block;
}

void Staging::give_back(void* block, std::size_t bytes) { free_[block_bytes(bytes)].push_back(block); }

std::uint64_t Staging::copy(void* from, void* to, std::size_t bytes, Queue queue) {
  const Shape shape{static_cast<std::int64_t>(bytes)};
  backend_.wait(queue, backend_.record(Queue::compute));
  backend_.use_queue(queue);
  backend_.copy({from, shape, DType::u8}, {to, shape, DType::u8});
  backend_.use_queue(Queue::compute);
  return backend_.record(queue);
}

}  // namespace mindpipe
