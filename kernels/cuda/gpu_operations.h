#pragma once
#include "backend.h"
#include "cuda/queues.h"
#include "cuda/staging.h"
#include "cuda/time_marks.h"

namespace mindpipe {

/// What a GPU does by memory, queues and kernels of our own: all operations but products and attention.
/// Shapes are checked here, arithmetic is in cuda/device. Nothing here allocates after construction or waits
/// for the device, but what says so. `run` stands in the file that is named after the operation's kernels.
class GpuOperations : public Backend {
 public:
  GpuOperations(Memory& memory, int device);
  ~GpuOperations() override;

  std::string description() const override { return describe_with("kernels of our own"); }
  Memory& memory() override { return memory_; }
  bool host_may_read() const override { return false; }
  bool wants_many_rows() const override { return true; }
  MINDPIPE_OWN_OPERATIONS(MINDPIPE_OVERRIDE)
  std::int64_t count_not_finite(const Tensor& x) override;
  std::uint64_t hash(const Tensor& x) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void upload(const void* host, const Tensor& to) override;
  void download(const Tensor& from, void* host) override;
  void use_queue(Queue queue) override { queue_ = queue; }
  void* native_queue() override { return stream(); }
  std::uint64_t record(Queue queue) override { return queues_.record(queue); }
  void wait(Queue queue, std::uint64_t event) override { queues_.wait(queue, event); }
  bool finished(std::uint64_t event) override { return queues_.finished(event); }
  void synchronize() override;
  std::uint64_t mark(Queue queue) override { return marks_.mark(queues_.stream(queue)); }
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override {
    return marks_.nanoseconds_between(first, then);
  }
  void keep_marks(std::size_t count) override { marks_.keep(count); }

 protected:
  /// "cuda: NVIDIA H200 of 132 multiprocessors; LIBRARIES, GPU 0 (141 GiB)": up to the comma what ranks have
  /// to agree on.
  std::string describe_with(const std::string& libraries) const;
  cudaDeviceProp properties() const;
  cudaStream_t stream() const { return queues_.stream(queue_); }
  /// Memory that an operation of the compute queue may use until it has run; the next one overwrites it.
  void* workspace(std::size_t bytes, const char* operation);
  /// What every operation ends with: did all its kernels start?
  void done(const char* operation);

  Memory& memory_;
  int device_;

 private:
  cuda::Queues queues_;
  cuda::Staging staging_;
  cuda::TimeMarks marks_;
  Arena workspace_;
  std::size_t shared_of_block_;  ///< bytes of shared memory that a block may be started with
  Queue queue_ = Queue::compute;
};

}  // namespace mindpipe
