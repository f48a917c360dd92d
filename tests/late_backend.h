#pragma once
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "core/clock.h"
#include "core/random.h"

namespace mindpipe {

/// A device on paper: operations wait in queues and run later, a few whenever somebody asks for an event,
/// from queues drawn by lot. Whoever reads too early, or writes over what is still to be read, gets other
/// bits than from the backend below, which runs everything at once.
class LateBackend final : public Backend {
 public:
  LateBackend(std::unique_ptr<Backend> device, int rank)
      : device_(std::move(device)),
        lots_{.seed = 3, .purpose = purpose_of("lots"), .sample = static_cast<std::uint32_t>(rank)} {}

  std::string description() const override { return "late " + device_->description(); }
  Memory& memory() override { return device_->memory(); }
  bool host_may_read() const override { return false; }
  void reserve(const Workspace& workspace) override { device_->reserve(workspace); }
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& before, const Tensor& y) override {
    later([=, this] { device_->linear(x, w, bias, activation, before, y); });
  }
  void linear_backward_input(const Tensor& dy, const Tensor& w, Activation activation, const Tensor& before,
                             const Tensor& dx) override {
    later([=, this] { device_->linear_backward_input(dy, w, activation, before, dx); });
  }
  void linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override {
    later([=, this] { device_->linear_backward_weight(dy, x, dw); });
  }
  void bias_backward(const Tensor& dy, const Tensor& db) override {
    later([=, this] { device_->bias_backward(dy, db); });
  }
  void swiglu(const Tensor& gate_up, const Tensor& y) override {
    later([=, this] { device_->swiglu(gate_up, y); });
  }
  void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up) override {
    later([=, this] { device_->swiglu_backward(dy, gate_up, dgate_up); });
  }
  void residual(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                const Window& window, const Tensor& y) override {
    later([=, this] { device_->residual(x, branch, bias, dropout, window, y); });
  }
  void dropout(const Tensor& x, const Dropout& dropout, const Window& window, const Tensor& y) override {
    later([=, this] { device_->dropout(x, dropout, window, y); });
  }
  void add(const Tensor& a, const Tensor& b, const Tensor& sum) override {
    later([=, this] { device_->add(a, b, sum); });
  }
  void maximum(const Tensor& a, const Tensor& b, const Tensor& largest) override {
    later([=, this] { device_->maximum(a, b, largest); });
  }
  void accumulate(const Tensor& part, const Tensor& total) override {
    later([=, this] { device_->accumulate(part, total); });
  }
  void convert(const Tensor& x, const Tensor& y) override {
    later([=, this] { device_->convert(x, y); });
  }
  void fill(const Tensor& x, double value) override {
    later([=, this] { device_->fill(x, value); });
  }
  void norm(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset, double epsilon,
            const Tensor& statistics, const Tensor& y) override {
    later([=, this] { device_->norm(kind, x, gain, offset, epsilon, statistics, y); });
  }
  void residual_norm(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                     const Window& window, const Tensor& y, NormKind kind, const Tensor& gain,
                     const Tensor& offset, double epsilon, const Tensor& statistics,
                     const Tensor& normed) override {
    later([=, this] {
      device_->residual_norm(x, branch, bias, dropout, window, y, kind, gain, offset, epsilon, statistics,
                             normed);
    });
  }
  void norm_backward_input(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain,
                           const Tensor& statistics, const Tensor& residual, const Tensor& dx) override {
    later([=, this] { device_->norm_backward_input(kind, dy, x, gain, statistics, residual, dx); });
  }
  void norm_backward_parameters(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& statistics,
                                const Tensor& dgain, const Tensor& doffset) override {
    later([=, this] { device_->norm_backward_parameters(kind, dy, x, statistics, dgain, doffset); });
  }
  void rotary(const Heads& heads, double base, std::int64_t first_position, bool inverse) override {
    later([=, this] { device_->rotary(heads, base, first_position, inverse); });
  }
  void embedding(const Tensor& tokens, const Tensor& table, std::int64_t first_row,
                 const Tensor& y) override {
    later([=, this] { device_->embedding(tokens, table, first_row, y); });
  }
  void embedding_backward(const Tensor& tokens, const Tensor& dy, std::int64_t first_row,
                          const Tensor& dtable) override {
    later([=, this] { device_->embedding_backward(tokens, dy, first_row, dtable); });
  }
  void add_positions(const Tensor& x, const Tensor& positions, const Window& window,
                     std::int64_t first_position, const Tensor& y) override {
    later([=, this] { device_->add_positions(x, positions, window, first_position, y); });
  }
  void positions_backward(const Tensor& dy, const Window& window, std::int64_t first_position,
                          const Tensor& dpositions) override {
    later([=, this] { device_->positions_backward(dy, window, first_position, dpositions); });
  }
  void attention(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                 const Tensor& log_sum, const Tensor& out) override {
    later([=, this] { device_->attention(question, q, k, v, log_sum, out); });
  }
  void attention_backward(const AttentionQuestion& question, const Heads& q, const Heads& k, const Heads& v,
                          const Tensor& log_sum, const Tensor& out, const Tensor& dout, const Heads& dq,
                          const Heads& dk, const Heads& dv) override {
    later([=, this] { device_->attention_backward(question, q, k, v, log_sum, out, dout, dq, dk, dv); });
  }
  void row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) override {
    later([=, this] { device_->row_maximum(logits, valid, maximum); });
  }
  void row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets,
                const Tensor& maximum, const Tensor& sums, const Tensor& of_target,
                const Tensor& total) override {
    later([=, this] {
      device_->row_sums(logits, valid, first_column, targets, maximum, sums, of_target, total);
    });
  }
  void cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                     const Tensor& of_target, const Tensor& total, double smoothing, std::int64_t vocabulary,
                     const Tensor& losses) override {
    later([=, this] {
      device_->cross_entropy(targets, maximum, sums, of_target, total, smoothing, vocabulary, losses);
    });
  }
  void cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                              const Tensor& targets, const Tensor& maximum, const Tensor& sums, double factor,
                              double smoothing, std::int64_t vocabulary, const Tensor& dlogits) override {
    later([=, this] {
      device_->cross_entropy_backward(logits, valid, first_column, targets, maximum, sums, factor, smoothing,
                                      vocabulary, dlogits);
    });
  }
  void sum_squares(const Tensor& x, const Tensor& sums) override {
    later([=, this] { device_->sum_squares(x, sums); });
  }
  void sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) override {
    later([=, this] { device_->sum_spans(x, spans, totals); });
  }
  void decide(const StepRule& rule, const Tensor& sums, const Tensor& decision) override {
    later([=, this] { device_->decide(rule, sums, decision); });
  }
  void adamw(const AdamW& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
             const Tensor& m, const Tensor& v, const Tensor& value) override {
    later([=, this] { device_->adamw(rule, decision, gradient, master, m, v, value); });
  }
  void sgd(const Sgd& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
           const Tensor& velocity, const Tensor& value) override {
    later([=, this] { device_->sgd(rule, decision, gradient, master, velocity, value); });
  }
  void copy(const Tensor& from, const Tensor& to) override {
    later([=, this] { device_->copy(from, to); });
  }

  /// Called where the host would wait for the device, or asks how far it has come, with the name of what it
  /// calls.
  void on_halt(std::function<void(const std::string& call)> hook) { on_halt_ = std::move(hook); }
  /// How much has been put into the queues so far.
  std::int64_t issued() const { return issued_; }

  std::int64_t count_not_finite(const Tensor& x) override {
    halt("count_not_finite");
    run_all();
    return device_->count_not_finite(x);
  }
  void upload(const void* host, const Tensor& to) override {
    std::vector<std::byte> bytes(to.bytes());
    std::memcpy(bytes.data(), host, bytes.size());
    later([=, this] { device_->upload(bytes.data(), to); });
  }
  void download(const Tensor& from, void* host) override {
    halt("download");
    run_all();
    device_->download(from, host);
  }
  void use_queue(int queue) override { queue_ = queue; }
  std::uint64_t record(int queue) override {
    ++issued_;
    const std::uint64_t event = happened_.size();
    happened_.push_back(false);
    queues_[queue].push_back([this, event] { return happened_[event] = true; });
    return event;
  }
  void wait(int queue, std::uint64_t event) override {
    ++issued_;
    queues_[queue].push_back([this, event] { return bool(happened_[event]); });
  }
  bool finished(std::uint64_t event) override {
    halt("finished");
    look();
    return happened_[event];
  }
  /// Lets a little of what was put in happen.
  void look() {
    for (int turns = 0; turns < 4; ++turns) {
      const auto first = static_cast<std::size_t>(lots_.uniform(draws_++) * queues_.size());
      for (std::size_t i = 0; i < queues_.size(); ++i)
        if (turn(queues_[(first + i) % queues_.size()])) break;
    }
  }
  void synchronize() override {
    halt("synchronize");
    run_all();
  }
  std::uint64_t mark(int queue) override {
    ++issued_;
    const std::uint64_t number = marks_.size();
    marks_.push_back(0);
    queues_[queue].push_back([this, number] { return marks_[number] = now_ns(), true; });
    return number;
  }
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override {
    MP_CHECK(marks_.at(first) != 0 && marks_.at(then) != 0, "marks {} and {} have not both happened", first,
             then);
    return marks_[then] - marks_[first];
  }
  void keep_marks(std::size_t) override {}
  /// Puts in what is tried, turn by turn, until it has happened: messages, which wait for another device.
  void put(std::function<bool()> step) {
    ++issued_;
    queues_[queue_].push_back(std::move(step));
  }

 private:
  void halt(const std::string& call) const {
    if (on_halt_) on_halt_(call);
  }
  void run_all() {
    const std::int64_t start = now_ns();
    for (bool moved = true;; moved = false) {
      bool empty = true;
      for (auto& queue : queues_) {
        moved = turn(queue) || moved;
        empty = empty && queue.empty();
      }
      if (empty) return;
      if (moved) continue;
      MP_CHECK(seconds_since(start) < 100,
               "a device on paper stands still: what its queues wait for does not come");
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // others may need the processor to answer
    }
  }
  void later(std::function<void()> operation) {
    ++issued_;
    queues_[queue_].push_back([operation] {
      operation();
      return true;
    });
    if (queue_ == compute_queue) progress();
  }
  /// Runs the head of a queue, unless it waits for an event.
  static bool turn(std::deque<std::function<bool()>>& queue) {
    if (queue.empty() || !queue.front()()) return false;
    queue.pop_front();
    return true;
  }

  std::unique_ptr<Backend> device_;
  std::array<std::deque<std::function<bool()>>, 6> queues_;
  std::vector<bool> happened_;
  std::vector<std::int64_t> marks_;
  RandomStream lots_;
  std::uint64_t draws_ = 0;
  std::int64_t issued_ = 0;
  std::function<void(const std::string&)> on_halt_;
  int queue_ = compute_queue;
};

}  // namespace mindpipe
