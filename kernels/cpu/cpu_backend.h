#pragma once
#include "backend.h"
#include "cpu/attention.h"
#include "cpu/isa.h"
#include "cpu/products.h"
#include "cpu/rotary_table.h"

namespace mindpipe {

/// The operations on the CPU: shapes are checked and work is divided among OpenMP threads here, arithmetic is
/// in cpu/simd. The methods stand in products.cpp, elementwise.cpp, norm.cpp, embedding.cpp, attention.cpp,
/// classifier.cpp, update.cpp and cpu_backend.cpp.
class CpuBackend final : public Backend {
 public:
  CpuBackend(Memory& memory, int threads, const std::string& instructions);

  std::string description() const override;
  Memory& memory() override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& before, const Tensor& y) override;
  void linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation, const Tensor& before,
                             const Tensor& dx) override;
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override;
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
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                 const Tensor& log_sum, const Tensor& out) override;
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                          const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq,
                          const Heads& dk, const Heads& dv) override;
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
  std::uint64_t record(int queue) override;
  void wait(int queue, std::uint64_t event) override;
  bool finished(std::uint64_t event) override;
  void synchronize() override;
  std::uint64_t mark(int queue) override;
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override;
  void keep_marks(std::size_t count) override;
  void reserve(const Workspace& workspace) override;

 private:
  void multiply(const Product& product);

  Memory& memory_;
  int threads_;
  Isa isa_;
  WorkArea product_area_;
  RotaryTable rotary_table_;
  AttentionScratch attention_scratch_;
};

}  // namespace mindpipe
