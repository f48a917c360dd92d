#pragma once
#include <map>
#include <vector>

#include "backend.h"

namespace mindpipe {

/// Pinned memory of the host that messages pass through where MPI cannot read the backend's own memory, and
/// the copies there and back. They run in queues of their own, behind what the compute queue has been given
/// so far. Blocks are kept and used again. One for each rank.
class Staging {
 public:
  /// Staging for tensors of `backend`; blocks come from `pinned`.
  Staging(Backend& backend, Memory& pinned) : backend_(backend), pinned_(pinned) {}
  Staging(const Staging&) = delete;
  ~Staging();

  void* take(std::size_t bytes);
  void give_back(void* block, std::size_t bytes);

  /// Copies out of the backend's memory into a block; returns an event that `finished` answers for.
  std::uint64_t copy_out(void* from, void* block, std::size_t bytes) {
    return copy(from, block, bytes, Queue::copy_out);
  }
  /// Copies from a block into the backend's memory; returns an event that `finished` answers for.
  std::uint64_t copy_in(void* block, void* to, std::size_t bytes) {
    return copy(block, to, bytes, Queue::copy_in);
  }
  bool finished(std::uint64_t event) { return backend_.finished(event); }

 private:
  std::uint64_t copy(void* from, void* to, std::size_t bytes, Queue queue);
  static std::size_t block_bytes(std::size_t bytes);

  Backend& backend_;
  Memory& pinned_;
  std::map<std::size_t, std::vector<void*>> free_;  ///< free blocks by their size
};

}  // namespace mindpipe
