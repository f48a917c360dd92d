#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/memory.h"
#include "core/random.h"
#include "core/tensor.h"
#include "decision.h"
#include "planned_attention.h"

namespace mindpipe {

enum class Activation : std::uint8_t { none, relu, gelu, silu };  ///< gelu: the tanh form, as GPT-2 has it
enum class NormKind : std::uint8_t { layer, rms };

/// One of the three products, by what may decide how it is computed.
struct ProductCall {
  enum class Kind : std::uint8_t { forward, backward_input, backward_weight };
  Kind kind = Kind::forward;
  DType operands = DType::f32, result = DType::f32;
  Activation activation = Activation::none;
  std::optional<DType> bias, before;  ///< of those that are there
  std::int64_t n = 0, k = 0, m = 0;   ///< rows, inputs, outputs
  auto operator<=>(const ProductCall&) const = default;
};

/// Which rows of the whole sequences a tensor [samples, rows, cols] holds: rows [first, first + rows) of
/// `whole`.
struct Window {
  std::int64_t samples = 0, rows = 0, first = 0, whole = 0;
};

/// Dropout with the mask as a function: element e of sample s (counted from stream.sample) is kept if
/// word(e) of the stream {.., sample = stream.sample + s} is at least threshold; kept values are scaled by 1
/// / (1 - p). `e` is the index in the sample's whole tensor: (row of the whole sequence) * columns + column.
struct Dropout {
  float probability = 0;  ///< 0: nothing happens, and nothing is drawn
  RandomStream stream;
};

/// Heads [first, first + count) of a tensor [samples, rows, all heads, head width].
struct Heads {
  Tensor data;
  int first = 0, count = 0;
};

/// The question of one attention: queries see keys [0, keys) of their sample, fewer where causal or padded.
struct AttentionQuestion {
  std::int64_t queries = 0, keys = 0;  ///< rows in use of each sample (a cache may be longer)
  bool causal = false;                 ///< query i sees keys 0 .. i + keys - queries
  float scale = 1;
  Tensor
      key_lengths;  ///< i32 [samples], or none: keys at or beyond it are padding. 0: the row's output is zero
  Dropout dropout;  ///< element = ((head_offset + head) * queries + query) * keys + key
  std::int64_t head_offset = 0;  ///< of this shard's first query head among all heads
};

struct AdamW {
  float rate = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0;
};
struct Sgd {
  float rate = 0, momentum = 0, decay = 0;
  bool nesterov = false;
};

inline constexpr std::int64_t statistics_chunk = 16384;

/// Queues by number, in the order of program/action.h; of messages, those that arrive and those that leave:
/// neither waits for the other.
inline constexpr int compute_queue = 0, copy_in_queue = 1, copy_out_queue = 2, channel_queue = 3,
                     group_queue = 4, send_queue = 5;

/// Working memory that a backend keeps beside operands, by what it is for; each the largest that any
/// operation asked for.
struct Workspace {
  std::size_t products = 0;   ///< packed operands of all threads
  std::size_t attention = 0;  ///< what the tasks of all threads work in
  std::size_t rotary = 0;     ///< the table of angles
  std::set<PlannedAttention> planned =
      {};  ///< what a library of the device will be asked, so that it plans before the first step
  std::size_t total() const { return aligned(products) + aligned(attention) + aligned(rotary); }
  void include(const Workspace& other) {
    products = std::max(products, other.products), attention = std::max(attention, other.attention),
    rotary = std::max(rotary, other.rotary);
    planned.insert(other.planned.begin(), other.planned.end());
  }
};

/// Everything a layer may ask of the hardware. Operands are contiguous views; x, y, dx, dy have the compute
/// dtype (f32, bf16, or f64 in gradient checks), parameter gradients and statistics are f32 (f64 when the
/// compute dtype is f64). Outputs are written, except parameter gradients, which are added to (+=). Every
/// output element is a pure function of its operands: not of threads, addresses, or of the rows beside it
/// (bits of a tile alone = bits inside the whole). Letters: n rows (tokens), k inputs, m outputs. Outputs may
/// not overlap inputs unless it says so.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  ///< "cpu: avx512, 2 threads"
  virtual Memory& memory() = 0;
  virtual bool host_may_read() const {
    return true;
  }  ///< and write its memory, at any time between two operations; so may MPI

  // -- products
  // -----------------------------------------------------------------------------------------------------
  /// y[n,m] = activation(x[n,k] w[m,k]^T + bias[m]); `bias` may be none. With an activation, `before`[n,m]
  /// (dtype of y), unless none, receives what went into it. Sum, bias and activation stay in f32; y is
  /// rounded once. The activation is of the f32 value. y may be f32 for bf16 operands.
  virtual void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                      const Tensor& before, const Tensor& y) = 0;
  /// dx[n,k] = (dy[n,m] w[m,k]) * activation'(before[n,k]); `before` is read only if there is an activation
  virtual void linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation,
                                     const Tensor& before, const Tensor& dx) = 0;
  /// dw[m,k] += dy[n,m]^T x[n,k]
  virtual void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) = 0;
  /// db[parts,m] += column sums of dy[samples, rows, m] in row order; part i takes rows [i rows/parts, (i+1)
  /// rows/parts) of every sample
  virtual void bias_backward(const Tensor& dy, const Tensor& db) = 0;

  // -- elementwise
  // --------------------------------------------------------------------------------------------------
  /// y[n,f] = silu(gate) * up, with gate_up[n,2f] = gate | up
  virtual void swiglu(const Tensor& gate_up, const Tensor& y) = 0;
  virtual void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) = 0;
  /// y = x + dropout(branch + bias); x, branch, y are [samples, rows, cols]; `bias`[cols] may be none; y may
  /// be x
  virtual void residual(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                        const Window& window, const Tensor& y) = 0;
  /// y = dropout(x): forward and backward alike; y may be x
  virtual void dropout(const Tensor& x, const Dropout& dropout, const Window& window, const Tensor& y) = 0;
  /// sum = a + b, rounded to its dtype; sum may be a or b
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& sum) = 0;
  /// largest = the larger of a and b, a NaN of either kept; f32 or f64; largest may be a or b
  virtual void maximum(const Tensor& a, const Tensor& b, const Tensor& largest) = 0;
  /// total += part, f32 += f32 or bf16
  virtual void accumulate(const Tensor& part, const Tensor& total) = 0;
  /// y = x in the dtype of y
  virtual void convert(const Tensor& x, const Tensor& y) = 0;
  virtual void fill(const Tensor& x, double value) = 0;

  // -- rows
  // ---------------------------------------------------------------------------------------------------------
  /// layer: y = (x - mean) / sqrt(variance + epsilon) * gain + offset; rms: y = x / sqrt(mean square +
  /// epsilon) * gain. statistics[n,2] f32 receives (mean, 1 / deviation); `offset` may be none
  virtual void norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset, double epsilon,
                    const Tensor& statistics, const Tensor& y) = 0;
  /// y = x + dropout(branch + bias) as in `residual`, then normed = its norm, in one pass: the norm reads the
  /// rounded sum
  virtual void residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias,
                             const Dropout& dropout, const Window& window, const Tensor& y, NormKind kind,
                             const Tensor& gain, const Tensor& offset, double epsilon,
                             const Tensor& statistics, const Tensor& normed) = 0;
  /// dx = residual + the gradient through the norm; `residual` may be none, dx may be residual.
  virtual void norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain,
                                   const Tensor& statistics, const Tensor& residual, const Tensor& dx) = 0;
  /// dgain[parts,cols] += , doffset[parts,cols] += (may be none): sums in row order of dy, x [samples, rows,
  /// cols]; parts as in bias_backward
  virtual void norm_backward_parameters(NormKind kind, const Tensor& dy, const Tensor& x,
                                        const Tensor& statistics, const Tensor& dgain,
                                        const Tensor& doffset) = 0;
  /// Turns the given heads in place: pairs (i, i + width/2) by the angle position * base^(-2i/width);
  /// `inverse` turns back. The position of row r of a sample is first_position + r
  virtual void rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) = 0;

  // -- embedding
  // ----------------------------------------------------------------------------------------------------
  /// y[n,cols] = table[tokens - first_row], zero where that is no row of the table. tokens i32 [n]
  virtual void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row,
                         const Tensor& y) = 0;
  /// dtable[rows,cols] f32 += rows of dy in token order
  virtual void embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t first_row,
                                  const Tensor& dtable) = 0;
  /// y = x + positions[first_position + row of the whole sequence], broadcast over samples; y may be x
  virtual void add_positions(const Tensor& x, const Tensor& positions, const Window& window,
                             std::int64_t first_position, const Tensor& y) = 0;
  /// dpositions[first_position + row of the whole sequence] f32 += dy, samples in order
  virtual void positions_backward(const Tensor& dy, const Window& window, std::int64_t first_position,
                                  const Tensor& dpositions) = 0;

  // -- attention
  // ----------------------------------------------------------------------------------------------------
  /// out[samples, queries, heads, width] = softmax(scale q k^T) v. Query head h reads key head h * k.count /
  /// q.count. log_sum[samples, heads, queries] f32 receives log(sum(exp)). A row that sees no key gives
  /// zeros.
  virtual void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                         const Tensor& log_sum, const Tensor& out) = 0;
  /// Writes the gradients of the heads into the like-shaped dq, dk, dv (which may be parts of one tensor).
  virtual void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                  const Heads& v, const Tensor& log_sum, const Tensor& out,
                                  const Tensor& dout, const Heads& dq, const Heads& dk, const Heads& dv) = 0;

  // -- classifier: softmax and cross-entropy over one shard of the vocabulary
  // ------------------------------------------
  /// logits f32 [n, m]; columns from `valid` on are padding and never count.
  /// maximum[n] = the largest of the row
  virtual void row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) = 0;
  /// sums[n] = sum of exp(logit - maximum) in fixed chunks; of_target[n] = logit of the target if the target
  /// is in [first_column, first_column + valid), else 0; total[n] = sum of logits (label smoothing reads it)
  virtual void row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                        const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                        const Tensor& of_target, const Tensor& total) = 0;
  /// losses[n] f32 = maximum + log(sum) - (1 - smoothing) target logit - smoothing / vocabulary * total; 0
  /// where the target is negative (ignored)
  virtual void cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                             const Tensor& of_target, const Tensor& total, double smoothing,
                             std::int64_t vocabulary, const Tensor& losses) = 0;
  /// dlogits[n,m] (compute dtype) = factor * (softmax - target distribution), 0 for ignored rows and padded
  /// columns; may be logits' own memory when of one dtype
  virtual void cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                                      const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                                      double factor, double smoothing, std::int64_t vocabulary,
                                      const Tensor& dlogits) = 0;

  // -- statistics and updates
  // -----------------------------------------------------------------------------------------
  /// sums[ceil(count / statistics_chunk)] f64: sum of squares of each chunk, taken in f32
  virtual void sum_squares(const Tensor& x, const Tensor& sums) = 0;
  /// How many elements are NaN or infinite, by bit test; waits for the answer.
  virtual std::int64_t count_not_finite(const Tensor& x) = 0;
  /// totals[s] f64 = x[begin] + ... + x[end - 1], added in f64 in this order, for spans[s] = begin, end (i32
  /// [n, 2]); 0 where a span is empty. x f32 or f64
  virtual void sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) = 0;
  /// Writes the step's decision from `sums` = its loss and its gradient's square (decision.h); what counts
  /// applied steps is added to.
  virtual void decide(const StepRule& rule, const Tensor& sums, const Tensor& decision) = 0;
  /// One fused pass: master, m, v f32; `value`, unless none, receives the master rounded to its dtype. A
  /// skipped step changes nothing.
  virtual void adamw(const AdamW& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
                     const Tensor& m, const Tensor& v, const Tensor& value) = 0;
  /// `velocity` is none when there is no momentum
  virtual void sgd(const Sgd& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
                   const Tensor& velocity, const Tensor& value) = 0;

  // -- memory and queues
  // ----------------------------------------------------------------------------------------------
  /// Bytes between two places of this backend's memory, between it and host memory (same dtype, same count).
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  virtual void upload(const void* host, const Tensor& to) = 0;
  virtual void download(const Tensor& from, void* host) = 0;  ///< waits
  /// Where the operations that follow are put. On the CPU every operation is done when it returns.
  virtual void use_queue(int queue) = 0;
  /// The queue that operations are put into at the moment, as the device's own libraries know it (a
  /// cudaStream_t); none where it has none.
  virtual void* native_queue() { return nullptr; }
  virtual std::uint64_t record(int queue) = 0;  ///< an event behind everything put into the queue so far
  virtual void wait(int queue, std::uint64_t event) = 0;  ///< the queue goes on after the event
  virtual bool finished(std::uint64_t event) = 0;
  virtual void synchronize() = 0;
  /// A moment of a queue, as `record`, of which one can ask how long after another it was, once both have
  /// happened. As many are kept as `keep_marks` says.
  virtual std::uint64_t mark(int queue) = 0;
  virtual std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) = 0;
  virtual void keep_marks(std::size_t count) = 0;

  /// Takes the working memory that operations will ask for. What was not foreseen is taken when it is first
  /// needed.
  virtual void reserve(const Workspace&) {}

  /// Called after every operation of the compute queue; the runtime drives communication from here.
  void on_progress(std::function<void()> hook) { progress_ = std::move(hook); }

 protected:
  void progress() const {
    if (progress_) progress_();
  }

 private:
  std::function<void()> progress_;
};

/// threads 0: as many as this process may use; instructions "auto", "avx512", "avx2" or "baseline".
std::unique_ptr<Backend> make_cpu_backend(Memory& memory, int threads, const std::string& instructions);

/// On GPU `device` of those that this process may use; `memory` is of kind `device`; `kernels`: a file of
/// doctor --tune, or empty. Refused in a build without CUDA.
std::unique_ptr<Backend> make_cuda_backend(Memory& memory, int device, const std::string& kernels = {});
inline constexpr std::size_t gpu_workspace_bytes = std::size_t{64} << 20;  ///< what it takes for itself
/// Times the library's algorithms for these products on a GPU and writes the table for `kernels`; `say` is
/// told of each.
std::string tuned_products(const std::vector<ProductCall>& calls, int device,
                           const std::function<void(const std::string&)>& say);
/// What graphics processors can be used here: "CUDA 13.0 on a driver for 13.0, NVIDIA H200", or why none.
std::string gpu_devices();
/// The libraries of the GPU by name and version, those of the build and those that can be opened here:
/// "cuBLASLt 13.1.0, cuDNN 9.19.0". Opening them takes a second where nobody else has done it lately; no GPU
/// is touched. Empty in a build without CUDA.
std::string gpu_libraries_built_with();
std::string gpu_libraries_found();
int gpu_count();  ///< 0 also where there is no driver, or no CUDA in this build

}  // namespace mindpipe
