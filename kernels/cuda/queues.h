#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/handle.h"

namespace mindpipe::cuda {

struct StreamTraits {
  using Raw = cudaStream_t;
  static Raw none() { return nullptr; }
  static void release(Raw stream) noexcept { cudaStreamDestroy(stream); }
};
struct EventTraits {
  using Raw = cudaEvent_t;
  static Raw none() { return nullptr; }
  static void release(Raw event) noexcept { cudaEventDestroy(event); }
};

/// One stream for each queue of a rank, numbered as in program/action.h, and a ring of events. All are made
/// once; nothing here waits for the device but `synchronize`, and `record` when an event of a whole ring ago
/// has not happened yet.
class Queues {
 public:
  static constexpr int count = 6;
  static constexpr int compute = 0, channel = 3, send = 5;
  Queues();

  cudaStream_t stream(int queue) const;
  std::uint64_t record(int queue);
  void wait(int queue, std::uint64_t event);
  bool finished(std::uint64_t event) const;
  void synchronize();

 private:
  static constexpr std::uint64_t ring = 4096;
  cudaEvent_t event_of(std::uint64_t number) const { return events_[number % ring].get(); }
  bool overwritten(std::uint64_t number) const { return number + ring < next_; }

  std::array<Handle<StreamTraits>, count> streams_;
  std::vector<Handle<EventTraits>> events_;
  std::uint64_t next_ = 0;  ///< number of the next event
};

}  // namespace mindpipe::cuda
