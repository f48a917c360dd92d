#pragma once
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"
#include "core/clock.h"
#include "core/random.h"
#include "device_stream.h"

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
  bool wants_many_rows() const override { return device_->wants_many_rows(); }
  bool host_may_read() const override { return false; }
  void reserve(const Workspace& workspace) override { device_->reserve(workspace); }
#define MINDPIPE_LATER(name, Operands)             \
  void name(const Operands& operands) override {   \
    later([=, this] { device_->name(operands); }); \
  }
  MINDPIPE_OPERATIONS(MINDPIPE_LATER)
#undef MINDPIPE_LATER
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
  std::uint64_t hash(const Tensor& x) override {
    halt("hash");
    run_all();
    return device_->hash(x);
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
  void use_queue(Queue queue) override { queue_ = queue; }
  void* native_queue() override { return &queues_[static_cast<std::size_t>(queue_)]; }
  std::uint64_t record(Queue queue) override {
    ++issued_;
    const std::uint64_t event = happened_.size();
    happened_.push_back(false);
    stream_of(queue).put([this, event] { return happened_[event] = true; });
    return event;
  }
  void wait(Queue queue, std::uint64_t event) override {
    ++issued_;
    stream_of(queue).put([this, event] { return bool(happened_[event]); });
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
        if (queues_[(first + i) % queues_.size()].turn()) break;
    }
  }
  void synchronize() override {
    halt("synchronize");
    run_all();
  }
  std::uint64_t mark(Queue queue) override {
    ++issued_;
    const std::uint64_t number = marks_.size();
    marks_.push_back(0);
    stream_of(queue).put([this, number] { return marks_[number] = now_ns(), true; });
    return number;
  }
  std::int64_t nanoseconds_between(std::uint64_t first, std::uint64_t then) override {
    MP_CHECK(std::min(first, then) + kept_ >= marks_.size(), "of marks {} to {} the last {} are kept", first,
             marks_.size(), kept_);
    MP_CHECK(marks_.at(first) != 0 && marks_.at(then) != 0, "marks {} and {} have not both happened", first,
             then);
    return marks_[then] - marks_[first];
  }
  void keep_marks(std::size_t count) override { kept_ = count; }
  /// Puts in what is tried, turn by turn, until it has happened: messages, which wait for another device.
  void put(std::function<bool()> step) {
    ++issued_;
    stream_of(queue_).put(std::move(step));
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
        moved = queue.turn() || moved;
        empty = empty && queue.steps.empty();
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
    stream_of(queue_).put([operation] {
      operation();
      return true;
    });
    if (queue_ == Queue::compute) progress();
  }

  std::unique_ptr<Backend> device_;
  std::array<CUstream_st, queue_count> queues_;
  std::vector<bool> happened_;
  std::vector<std::int64_t> marks_;
  std::size_t kept_ = 0;
  RandomStream lots_;
  std::uint64_t draws_ = 0;
  std::int64_t issued_ = 0;
  std::function<void(const std::string&)> on_halt_;
  CUstream_st& stream_of(Queue queue) { return queues_[static_cast<std::size_t>(queue)]; }
  Queue queue_ = Queue::compute;
};

}  // namespace mindpipe
