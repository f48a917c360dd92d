#pragma once
#include <vector>

#include "cuda/queues.h"

namespace mindpipe::cuda {

/// A ring of events that know their time.
class TimeMarks {
 public:
  /// Holds `count` marks from here on; those before are lost.
  void keep(std::size_t count);
  std::uint64_t mark(cudaStream_t stream);
  /// The time between two marks that are still held and have happened.
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) const;

 private:
  cudaEvent_t event_of(std::uint64_t number) const;

  std::vector<Handle<EventTraits>> events_;
  std::uint64_t next_ = 0;
};

}  // namespace mindpipe::cuda
