#include "cuda/time_marks.h"

#include <cmath>

#include "cuda/error.h"

namespace mindpipe::cuda {

void TimeMarks::keep(std::size_t count) {
  events_.clear();
  events_.resize(count);
  for (auto& event : events_) MP_CUDA(cudaEventCreateWithFlags(event.receive(), cudaEventDefault));
  next_ = 0;
}

std::uint64_t TimeMarks::mark(cudaStream_t stream) {
  MP_CHECK(!events_.empty(), "cuda: a mark where none are kept");
  const std::uint64_t number = next_++;
  MP_CUDA(cudaEventRecord(event_of(number), stream));
  return number;
}

cudaEvent_t TimeMarks::event_of(std::uint64_t number) const {
  MP_CHECK(number < next_ && number + events_.size() >= next_, "cuda: mark {} of {}, {} of which are kept",
           number, next_, events_.size());
  return events_[number % events_.size()].get();
}

std::int64_t TimeMarks::nanoseconds_between(std::uint64_t first, std::uint64_t then) const {
  float milliseconds = 0;
  MP_CUDA(cudaEventElapsedTime(&milliseconds, event_of(first), event_of(then)));
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace mindpipe::cuda
