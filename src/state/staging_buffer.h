#pragma once
#include <memory>

#include "backend.h"

namespace mindpipe {

/// Whether the host follows addresses of the backend's memory.
inline bool host_reads(Backend& backend) {
  return backend.host_may_read() && backend.memory().kind() != Memory::Kind::counted;
}

/// Room in which state passes, so many bytes at a time, between files and a backend's memory: the compute
/// queue's scratch, which is empty between two steps, and as much of the host's where the host does not reach
/// that.
class StagingBuffer {
 public:
  StagingBuffer(Backend& backend, Arena& scratch, std::size_t bytes)
      : backend_(backend), scratch_(scratch), mark_(scratch.mark()) {
    room_ = scratch.take({static_cast<std::int64_t>(bytes)}, DType::u8);
    if (!host_reads(backend)) outside_ = std::make_unique<std::byte[]>(bytes);
  }
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;
  ~StagingBuffer() { scratch_.release(mark_); }

  std::size_t bytes() const { return room_.bytes(); }
  std::int64_t most_floats() const { return static_cast<std::int64_t>(bytes() / sizeof(float)); }
  template <class T>
  T* host() const {
    return outside_ ? reinterpret_cast<T*>(outside_.get()) : room_.as<T>();
  }
  /// The first `count` f32 that the host has put in, where the backend's operations find them.
  Tensor floats(std::int64_t count) {
    const Tensor there{room_.data, {count}, DType::f32};
    if (outside_) backend_.upload(outside_.get(), there);
    return there;
  }

 private:
  Backend& backend_;
  Arena& scratch_;
  std::size_t mark_;
  Tensor room_;
  std::unique_ptr<std::byte[]> outside_;
};

}  // namespace mindpipe
