#pragma once
#include "backend.h"
#include "workspace_on_paper.h"

namespace mindpipe {

/// What carries messages between ranks, of which so many share a node: what large messages really reach, one
/// way, for each rank.
struct LinkDescription {
  int ranks_per_node = 1;
  double latency = 0, bytes = 0;                              ///< within a node: seconds; a second
  double latency_between_nodes = 0, bytes_between_nodes = 0;  ///< the same
};

/// A device on paper: what its operations cost. Rates are what large products and copies really reach, not
/// data-sheet peaks.
struct DeviceDescription {
  std::string name;
  double flops_f32 = 0, flops_bf16 = 0;  ///< a second
  double bytes = 0;                      ///< of memory traffic, a second
  double launch = 0;                     ///< seconds before any operation
  LinkDescription links = {};
};
/// One of the bundled devices ("h200", "a100", "core", "instant"), or a sentence that lists them.
DeviceDescription describe_device(const std::string& name);

/// No arithmetic and no tensor memory: addresses are counted, never followed. Each operation adds what it
/// costs to a tally, from shapes alone. A counting backend (`Pace::count`) goes on at once; an emulating one
/// sleeps until its clock has caught up (`Pace::wait`), at the latest in `synchronize`.
class EmulatedBackend final : public Backend {
 public:
  enum class Pace : std::uint8_t { count, wait };
  /// `longest_sleep_ns`: between two looks at what else is under way; more where many ranks share a
  /// processor.
  EmulatedBackend(Memory& memory, DeviceDescription device, Pace pace,
                  std::int64_t longest_sleep_ns = 500'000);

  /// Seconds that all operations so far cost; taking a difference prices a stretch of a model.
  double seconds() const { return seconds_; }
  double operations() const { return flops_; }
  const DeviceDescription& device() const { return device_; }
  /// From here on `workspace` hears of every operation that may take working memory.
  void tell(WorkspaceOnPaper& workspace) { workspace_ = &workspace; }
  /// Called with every product that is asked for.
  void on_product(std::function<void(const ProductCall&)> observer) { observe_ = std::move(observer); }

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

 private:
  void observe(const ProductCall& call) const {
    if (observe_) observe_(call);
  }
  void spend(double flops, double bytes, DType dtype);
  void wait_until(std::int64_t end_ns);

  Memory& memory_;
  DeviceDescription device_;
  WorkspaceOnPaper* workspace_ = nullptr;
  Pace pace_;
  std::int64_t longest_sleep_ns_;
  std::function<void(const ProductCall&)> observe_;
  double seconds_ = 0, flops_ = 0;
  std::int64_t free_at_ns_ = 0;  ///< when the imagined compute queue is idle again
  std::int64_t left_at_ns_ = 0;  ///< when the host left the last operation
};

}  // namespace mindpipe
