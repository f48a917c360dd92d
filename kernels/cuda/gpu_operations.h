#pragma once
#include "backend.h"
#include "cuda/queues.h"
#include "cuda/staging.h"
#include "cuda/time_marks.h"

namespace mindpipe {

/// What a GPU does by memory, queues and kernels of our own: all operations but products and attention.
/// Shapes are checked here, arithmetic is in cuda/device. Nothing here allocates after construction or waits
/// for the device, but what says so. The methods stand in elementwise.cpp, norm.cpp, embedding.cpp,
/// classifier.cpp, update.cpp and gpu_operations.cpp.
class GpuOperations : public Backend {
 public:
  GpuOperations(Memory& memory, int device);
  ~GpuOperations() override;

  std::string description() const override;
  Memory& memory() override;
  bool host_may_read() const override { return false; }
  void bias_backward(const Tensor& dy, const Tensor& db) override;
  void swiglu(const Tensor& gate_up, const Tensor& y) override;
  void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) override;
  void residual(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                const Window& window, const Tensor& y) override;
  void dropout(const Tensor& x, const Dropout& dropout, const Window& window, const Tensor& y) override;
  void add(const Tensor& a, const Tensor& b, const Tensor& sum) override;
  void maximum(const Tensor& a, const Tensor& b, const Tensor& largest) override;
  void accumulate(const Tensor& part, const Tensor& total) override;
  void convert(const Tensor& x, const Tensor& y) override;
  void fill(const Tensor& x, double value) override;
  void norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset, double epsilon,
            const Tensor& statistics, const Tensor& y) override;
  void residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                     const Window& window, const Tensor& y, NormKind kind, const Tensor& gain,
                     const Tensor& offset, double epsilon, const Tensor& statistics,
                     const Tensor& normed) override;
  void norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain,
                           const Tensor& statistics, const Tensor& residual, const Tensor& dx) override;
  void norm_backward_parameters(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& statistics,
                                const Tensor& dgain, const Tensor& doffset) override;
  void rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) override;
  void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& y) override;
  void embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t first_row,
                          const Tensor& dtable) override;
  void add_positions(const Tensor& x, const Tensor& positions, const Window& window,
                     std::int64_t first_position, const Tensor& y) override;
  void positions_backward(const Tensor& dy, const Window& window, std::int64_t first_position,
                          const Tensor& dpositions) override;
  void row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) override;
  void row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets,
                const Tensor& maximum, const Tensor& sums, const Tensor& of_target,
                const Tensor& total) override;
  void cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                     const Tensor& of_target, const Tensor& total, double smoothing, std::int64_t vocabulary,
                     const Tensor& losses) override;
  void cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                              const Tensor& targets, const Tensor& maximum, const Tensor& sums, double factor,
                              double smoothing, std::int64_t vocabulary, const Tensor& dlogits) override;
  void sum_squares(const Tensor& x, const Tensor& sums) override;
  std::int64_t count_not_finite(const Tensor& x) override;
  void sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) override;
  void decide(const StepRule& rule, const Tensor& sums, const Tensor& decision) override;
  void adamw(const AdamW& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
             const Tensor& m, const Tensor& v, const Tensor& value) override;
  void sgd(const Sgd& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
           const Tensor& velocity, const Tensor& value) override;
  void copy(const Tensor& from, const Tensor& to) override;
  void upload(const void* host, const Tensor& to) override;
  void download(const Tensor& from, void* host) override;
  void use_queue(int queue) override;
  void* native_queue() override { return stream(); }
  std::uint64_t record(int queue) override;
  void wait(int queue, std::uint64_t event) override;
  bool finished(std::uint64_t event) override;
  void synchronize() override;
  std::uint64_t mark(int queue) override;
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override;
  void keep_marks(std::size_t count) override;

 protected:
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
  int queue_ = cuda::Queues::compute;
};

}  // namespace mindpipe
