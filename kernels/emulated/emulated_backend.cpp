#include "emulated/emulated_backend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "core/clock.h"

namespace mindpipe {
namespace {

// What a device reaches on large shapes: an H200 and an A100 of a cluster, eight to a node, each with NVLink
// to the others and a port of 400 or 200 Gb/s to other nodes; and one AVX-512 core of a server of 64, who
// talk through memory and share a port of 100 Gb/s. "instant" computes in no time: what is left is the
// program's own cost.
const std::array devices{
    DeviceDescription{"h200", 50e12, 700e12, 4.0e12, 4e-6, {8, 8e-6, 350e9, 15e-6, 45e9}},
    DeviceDescription{"a100", 18e12, 250e12, 1.6e12, 5e-6, {8, 10e-6, 230e9, 20e-6, 22e9}},
    DeviceDescription{"core", 0.12e12, 0.12e12, 8e9, 1e-6, {64, 2e-6, 10e9, 5e-6, 1e9}},
    DeviceDescription{"instant", 1e30, 1e30, 1e30, 0, {64, 2e-6, 10e9, 5e-6, 1e9}},
};

constexpr std::int64_t ahead_ns =
    1'000'000;                              // the host may be this far ahead of the device, as of a real one
constexpr std::int64_t pause_ns = 100'000;  // between two operations: the device stood idle
constexpr std::int64_t most_late_ns = 2'000'000;

double size(const Tensor& t) { return static_cast<double>(t.bytes()); }
std::optional<DType> dtype_of(const Tensor& t) { return t ? std::optional(t.dtype) : std::nullopt; }
double moved(std::initializer_list<const Tensor*> tensors) {
  double bytes = 0;
  for (const Tensor* t : tensors) bytes += size(*t);
  return bytes;
}

}  // namespace

DeviceDescription describe_device(const std::string& name) {
  std::string known;
  for (const DeviceDescription& device : devices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  fail(Exit::bad_configuration, "device.description is '{}' (bundled devices: {})", name, known);
}

EmulatedBackend::EmulatedBackend(Memory& memory, DeviceDescription device, Pace pace,
                                 std::int64_t longest_sleep_ns)
    : memory_(memory), device_(std::move(device)), pace_(pace), longest_sleep_ns_(longest_sleep_ns) {
  MP_CHECK(memory.kind() == Memory::Kind::counted, "an emulated device counts its memory");
}

void EmulatedBackend::spend(double flops, double bytes, DType dtype) {
  const double rate = dtype == DType::bf16 ? device_.flops_bf16 : device_.flops_f32;
  const double cost = device_.launch + std::max(flops / rate, bytes / device_.bytes);
  seconds_ += cost;
  flops_ += flops;
  if (pace_ == Pace::wait) {
    // Operations that follow each other run on one clock, so that one that was awoken late shortens the next;
    // after a pause it starts anew.
    const std::int64_t now = now_ns();
    if (now - left_at_ns_ > pause_ns || free_at_ns_ < now - most_late_ns)
      free_at_ns_ = std::max(free_at_ns_, now);
    free_at_ns_ += static_cast<std::int64_t>(cost * 1e9);
    if (free_at_ns_ - now > ahead_ns) wait_until(free_at_ns_ - ahead_ns / 2);
  }
  progress();
  left_at_ns_ = now_ns();
}

/// Sleeps towards the end and meets it awake: a sleeper may be awoken 60 us late.
void EmulatedBackend::wait_until(std::int64_t end_ns) {
  while (now_ns() < end_ns) {
    progress();
    const std::int64_t left = end_ns - now_ns();
    if (left > 100'000)
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left - 60'000, longest_sleep_ns_)));
    else std::this_thread::yield();
  }
}

std::string EmulatedBackend::description() const { return "emulated: " + device_.name; }
Memory& EmulatedBackend::memory() { return memory_; }

void EmulatedBackend::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                             const Tensor& before, const Tensor& y) {
  if (workspace_ != nullptr) workspace_->product(x.dtype, x.rows(), w.rows(), x.cols());
  MP_CHECK(x.cols() == w.cols() && y.cols() == w.rows() && x.rows() == y.rows(), "linear: x {} w {} y {}",
           to_string(x.shape), to_string(w.shape), to_string(y.shape));
  observe({ProductCall::Kind::forward, x.dtype, y.dtype, activation, dtype_of(bias), dtype_of(before),
           x.rows(), x.cols(), w.rows()});
  spend(2.0 * y.count() * x.cols(), moved({&x, &w, &bias, &before, &y}), x.dtype);
}
void EmulatedBackend::linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation,
                                            const Tensor& before, const Tensor& dx) {
  if (workspace_ != nullptr) workspace_->product(dy.dtype, dx.rows(), dx.cols(), dy.cols());
  MP_CHECK(dy.cols() == w.rows() && dx.cols() == w.cols() && dx.rows() == dy.rows(),
           "linear_backward_input: dy {} w {} dx {}", to_string(dy.shape), to_string(w.shape),
           to_string(dx.shape));
  const auto kept = activation == Activation::none ? std::nullopt : dtype_of(before);
  observe({ProductCall::Kind::backward_input,
           dy.dtype,
           dx.dtype,
           activation,
           {},
           kept,
           dy.rows(),
           w.cols(),
           dy.cols()});
  spend(2.0 * dx.count() * dy.cols(), moved({&dy, &w, &before, &dx}), dy.dtype);
}
void EmulatedBackend::linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  if (workspace_ != nullptr) workspace_->product(dy.dtype, dw.rows(), dw.cols(), x.rows());
  MP_CHECK(dy.rows() == x.rows() && dw.rows() == dy.cols() && dw.cols() == x.cols(),
           "linear_backward_weight: dy {} x {} dw {}", to_string(dy.shape), to_string(x.shape),
           to_string(dw.shape));
  observe({ProductCall::Kind::backward_weight,
           dy.dtype,
           dw.dtype,
           Activation::none,
           {},
           {},
           dy.rows(),
           x.cols(),
           dy.cols()});
  spend(2.0 * dw.count() * x.rows(), moved({&dy, &x, &dw, &dw}), dy.dtype);
}
void EmulatedBackend::bias_backward(const Tensor& dy, const Tensor& db) {
  spend(dy.count(), moved({&dy, &db}), DType::f32);
}

void EmulatedBackend::swiglu(const Tensor& gate_up, const Tensor& y) {
  spend(0, moved({&gate_up, &y}), y.dtype);
}
void EmulatedBackend::swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) {
  spend(0, moved({&dy, &gate_up, &dgate_up}), dy.dtype);
}
void EmulatedBackend::residual(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout&,
                               const Window&, const Tensor& y) {
  spend(0, moved({&x, &branch, &bias, &y}), y.dtype);
}
void EmulatedBackend::dropout(const Tensor& x, const Dropout&, const Window&, const Tensor& y) {
  spend(0, moved({&x, &y}), y.dtype);
}
void EmulatedBackend::add(const Tensor& a, const Tensor& b, const Tensor& sum) {
  spend(0, moved({&a, &b, &sum}), sum.dtype);
}
void EmulatedBackend::maximum(const Tensor& a, const Tensor& b, const Tensor& largest) {
  spend(0, moved({&a, &b, &largest}), largest.dtype);
}
void EmulatedBackend::accumulate(const Tensor& part, const Tensor& total) {
  spend(0, moved({&part, &total, &total}), total.dtype);
}
void EmulatedBackend::convert(const Tensor& x, const Tensor& y) { spend(0, moved({&x, &y}), y.dtype); }
void EmulatedBackend::fill(const Tensor& x, double) { spend(0, moved({&x}), x.dtype); }

void EmulatedBackend::norm(NormKind, const Tensor& x, const Tensor&, const Tensor&, double,
                           const Tensor& statistics, const Tensor& y) {
  spend(0, moved({&x, &statistics, &y}), y.dtype);
}
void EmulatedBackend::residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout&,
                                    const Window&, const Tensor& y, NormKind, const Tensor&, const Tensor&,
                                    double, const Tensor& statistics, const Tensor& normed) {
  spend(0, moved({&x, &branch, &bias, &y, &statistics, &normed}), y.dtype);
}
void EmulatedBackend::norm_backward_input(NormKind, const Tensor& dy, const Tensor& x, const Tensor&,
                                          const Tensor&, const Tensor& residual, const Tensor& dx) {
  spend(0, moved({&dy, &x, &residual, &dx}), dy.dtype);
}
void EmulatedBackend::norm_backward_parameters(NormKind, const Tensor& dy, const Tensor& x, const Tensor&,
                                               const Tensor& dgain, const Tensor&) {
  spend(0, moved({&dy, &x, &dgain}), dy.dtype);
}
void EmulatedBackend::rotary(const Heads& heads, double, std::int64_t, bool) {
  if (workspace_ != nullptr) workspace_->rotary(heads);
  spend(0, 2 * size(heads.data), heads.data.dtype);
}

void EmulatedBackend::embedding(const Tensor& tokens, const Tensor&, std::int64_t, const Tensor& y) {
  spend(0, moved({&tokens, &y, &y}), y.dtype);
}
void EmulatedBackend::embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t,
                                         const Tensor&) {
  spend(0, 3 * size(dy) + size(tokens), dy.dtype);
}
void EmulatedBackend::add_positions(const Tensor& x, const Tensor& positions, const Window&, std::int64_t,
                                    const Tensor& y) {
  spend(0, moved({&x, &positions, &y}), y.dtype);
}
void EmulatedBackend::positions_backward(const Tensor& dy, const Window&, std::int64_t,
                                         const Tensor& dpositions) {
  spend(0, moved({&dy, &dpositions}), dy.dtype);
}

void EmulatedBackend::attention(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                const Heads& v, const Tensor& log_sum, const Tensor& out) {
  if (workspace_ != nullptr) workspace_->attention(question, q, k, v, log_sum, out);
  const double pairs = static_cast<double>(question.queries) * question.keys * (question.causal ? 0.5 : 1) *
                       q.count * out.shape[0];
  spend(4 * pairs * out.cols(), size(q.data) + size(k.data) + size(out), out.dtype);
}
void EmulatedBackend::attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k,
                                         const Heads& v, const Tensor& log_sum, const Tensor& out,
                                         const Tensor& dout, const Heads& dq, const Heads& dk,
                                         const Heads& dv) {
  if (workspace_ != nullptr)
    workspace_->attention_backward(question, q, k, v, log_sum, out, dout, dq, dk, dv);
  const double pairs = static_cast<double>(question.queries) * question.keys * (question.causal ? 0.5 : 1) *
                       q.count * out.shape[0];
  spend(10 * pairs * out.cols(), 2 * (size(q.data) + size(k.data)) + size(out) + size(dout), out.dtype);
}

void EmulatedBackend::row_maximum(const Tensor& logits, std::int64_t, const Tensor&) {
  spend(0, size(logits), DType::f32);
}
void EmulatedBackend::row_sums(const Tensor& logits, std::int64_t, std::int64_t, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&, const Tensor&) {
  spend(0, size(logits), DType::f32);
}
void EmulatedBackend::cross_entropy(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    double, std::int64_t, const Tensor& losses) {
  spend(0, 6 * size(losses), DType::f32);
}
void EmulatedBackend::cross_entropy_backward(const Tensor& logits, std::int64_t, std::int64_t, const Tensor&,
                                             const Tensor&, const Tensor&, double, double, std::int64_t,
                                             const Tensor& dlogits) {
  spend(0, moved({&logits, &dlogits}), DType::f32);
}

void EmulatedBackend::sum_squares(const Tensor& x, const Tensor&) { spend(0, size(x), x.dtype); }
std::int64_t EmulatedBackend::count_not_finite(const Tensor& x) {
  spend(0, size(x), x.dtype);
  return 0;
}
void EmulatedBackend::sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) {
  spend(0, moved({&x, &spans, &totals}), DType::f64);
}
void EmulatedBackend::decide(const StepRule&, const Tensor& sums, const Tensor& decision) {
  spend(0, moved({&sums, &decision}), DType::f64);
}
void EmulatedBackend::adamw(const AdamW&, const Tensor&, const Tensor& gradient, const Tensor& master,
                            const Tensor& m, const Tensor& v, const Tensor& value) {
  spend(0, size(gradient) + 2 * moved({&master, &m, &v}) + size(value), DType::f32);
}
void EmulatedBackend::sgd(const Sgd&, const Tensor&, const Tensor& gradient, const Tensor& master,
                          const Tensor& velocity, const Tensor& value) {
  spend(0, size(gradient) + 2 * moved({&master, &velocity}) + size(value), DType::f32);
}

void EmulatedBackend::copy(const Tensor& from, const Tensor&) { spend(0, 2 * size(from), from.dtype); }
void EmulatedBackend::upload(const void*, const Tensor&) {}
void EmulatedBackend::download(const Tensor& from, void* host) {
  std::fill_n(static_cast<std::byte*>(host), from.bytes(), std::byte{0});
}
void EmulatedBackend::use_queue(int) {}
std::uint64_t EmulatedBackend::record(int) { return 0; }
void EmulatedBackend::wait(int, std::uint64_t) {}
bool EmulatedBackend::finished(std::uint64_t) { return true; }
void EmulatedBackend::synchronize() {
  if (pace_ == Pace::wait) wait_until(free_at_ns_);
  left_at_ns_ = now_ns();
}

std::uint64_t EmulatedBackend::mark(int) { return static_cast<std::uint64_t>(now_ns()); }
std::int64_t EmulatedBackend::nanoseconds_between(std::uint64_t first, std::uint64_t then) {
  return static_cast<std::int64_t>(then - first);
}
void EmulatedBackend::keep_marks(std::size_t) {}

}  // namespace mindpipe
