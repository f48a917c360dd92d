#include "cuda/queues.h"

#include "cuda/error.h"

namespace mindpipe::cuda {

Queues::Queues() {
  int least = 0, greatest = 0;
  MP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  // Messages between stages are short and somebody waits for them: they go before what is queued behind.
  for (int queue = 0; queue < queue_count; ++queue) {
    const bool passes_on =
        queue == static_cast<int>(Queue::receive) || queue == static_cast<int>(Queue::send);
    MP_CUDA(cudaStreamCreateWithPriority(streams_[static_cast<std::size_t>(queue)].receive(),
                                         cudaStreamNonBlocking, passes_on ? greatest : least));
  }
  events_.resize(ring);
  for (auto& event : events_) MP_CUDA(cudaEventCreateWithFlags(event.receive(), cudaEventDisableTiming));
}

cudaStream_t Queues::stream(Queue queue) const { return streams_[static_cast<std::size_t>(queue)].get(); }

std::uint64_t Queues::record(Queue queue) {
  const std::uint64_t number = next_;
  if (number >= ring)
    MP_CUDA(cudaEventSynchronize(event_of(number)));  // so that every number that is overwritten has happened
  MP_CUDA(cudaEventRecord(event_of(number), stream(queue)));
  ++next_;
  return number;
}

void Queues::wait(Queue queue, std::uint64_t event) {
  MP_CHECK(event < next_, "cuda: event {} has not been recorded", event);
  if (!overwritten(event)) MP_CUDA(cudaStreamWaitEvent(stream(queue), event_of(event), 0));
}

bool Queues::finished(std::uint64_t event) const {
  MP_CHECK(event < next_, "cuda: event {} has not been recorded", event);
  if (overwritten(event)) return true;
  const cudaError_t answer = cudaEventQuery(event_of(event));
  if (answer == cudaErrorNotReady) {
    cudaGetLastError();  // the runtime keeps even this, and the next operation would take it for a failure of
                         // its own
    return false;
  }
  MP_CUDA(answer);
  return true;
}

void Queues::synchronize() {
  for (const auto& stream : streams_) MP_CUDA(cudaStreamSynchronize(stream.get()));
}

}  // namespace mindpipe::cuda
