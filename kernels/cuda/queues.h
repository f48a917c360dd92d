#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/handle.h"
#include "core/queue.h"

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

/// One stream for each queue of a rank, and a ring of events. All are made once; nothing here waits for the
/// device but `synchronize`, and `record` when an event of a whole ring ago has not happened yet.
class Queues {
 public:
  Queues();

  cudaStream_t stream(Queue queue) const;
  std::uint64_t record(Queue queue);
  void wait(Queue queue, std::uint64_t event);
  bool finished(std::uint64_t event) const;
  void synchronize();

 private:
  static constexpr std::uint64_t ring = 4096;
  cudaEvent_t event_of(std::uint64_t number) const { return events_[number % ring].get(); }
  bool overwritten(std::uint64_t number) const { return number + ring < next_; }

  std::array<Handle<StreamTraits>, queue_count> streams_;
  std::vector<Handle<EventTraits>> events_;
  std::uint64_t next_ = 0;  ///< number of the next event
};

}  // namespace mindpipe::cuda
