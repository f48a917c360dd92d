#pragma once
#include <functional>
#include <string>

#include "core/memory.h"
#include "core/queue.h"
#include "core/tensor.h"
#include "plans/workspace.h"

namespace mindpipe {

/// The hardware that operations run on, without its arithmetic: memory, queues, events, times.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string description() const = 0;  ///< "cpu: avx512, 2 threads"
  virtual Memory& memory() = 0;
  /// May the host read and write its memory at any time between two operations? So may MPI then.
  virtual bool host_may_read() const { return true; }
  /// Whether it is fast with products of many rows only, and a pass over memory is long beside them.
  virtual bool wants_many_rows() const { return false; }

  /// Bytes between two places of this device's memory, between it and host memory (same dtype, same count).
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  virtual void upload(const void* host, const Tensor& to) = 0;
  virtual void download(const Tensor& from, void* host) = 0;  ///< waits

  /// Where the operations that follow are put. On the CPU every operation is done when it returns.
  virtual void use_queue(Queue queue) = 0;
  /// The queue that operations are put into now, as the device's libraries know it (a cudaStream_t), or none.
  virtual void* native_queue() { return nullptr; }
  virtual std::uint64_t record(Queue queue) = 0;  ///< an event behind everything put into the queue so far
  virtual void wait(Queue queue, std::uint64_t event) = 0;  ///< the queue goes on after the event
  virtual bool finished(std::uint64_t event) = 0;
  virtual void synchronize() = 0;

  /// A moment of a queue, as `record`, of which one can ask how long after another it was, once both have
  /// happened. As many are kept as `keep_marks` says.
  virtual std::uint64_t mark(Queue queue) = 0;
  virtual std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) = 0;
  virtual void keep_marks(std::size_t count) = 0;

  /// Takes the working memory that operations will ask for; what was not foreseen is taken when needed.
  virtual void reserve(const Workspace&) {}

  /// Sets what is called after every operation of the compute queue; the runtime drives communication there.
  void on_progress(std::function<void()> hook) { progress_ = std::move(hook); }

 protected:
  void progress() const {
    if (progress_) progress_();
  }

 private:
  std::function<void()> progress_;
};

}  // namespace mindpipe
