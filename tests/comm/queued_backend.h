#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <functional>

#include "core/random.h"
#include "plain_backend.h"

namespace mindpipe {

/// A device on paper: operations wait in queues and run later, one whenever somebody asks for an event, from a queue drawn by lot. What reads
/// too early, or writes over what is still to be read, gives other bits than a backend that runs everything at once.
class QueuedBackend final : public PlainBackend {
 public:
  QueuedBackend(Memory& memory, int rank) : PlainBackend(memory), lots_{.seed = 3, .purpose = purpose_of("lots"), .sample = static_cast<std::uint32_t>(rank)} {}

  void add(const Tensor& a, const Tensor& b, const Tensor& sum) override { put([=, this] { PlainBackend::add(a, b, sum); }); }
  void maximum(const Tensor& a, const Tensor& b, const Tensor& largest) override { put([=, this] { PlainBackend::maximum(a, b, largest); }); }
  void copy(const Tensor& from, const Tensor& to) override { put([=, this] { PlainBackend::copy(from, to); }); }
  void use_queue(int queue) override { queue_ = queue; }
  std::uint64_t record(int queue) override {
    const std::uint64_t event = happened_.size();
    happened_.push_back(false);
    queues_[queue].push_back([this, event] { return happened_[event] = true; });
    return event;
  }
  void wait(int queue, std::uint64_t event) override {
    queues_[queue].push_back([this, event] { return bool(happened_[event]); });
  }
  bool finished(std::uint64_t event) override {
    const auto first = static_cast<std::size_t>(lots_.uniform(draws_++) * queues_.size());
    for (std::size_t i = 0; i < queues_.size(); ++i)
      if (turn(queues_[(first + i) % queues_.size()])) break;
    return happened_[event];
  }
  void synchronize() override {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& queue : queues_) moved = turn(queue) || moved;
    }
  }

 private:
  void put(std::function<void()> operation) {
    queues_[queue_].push_back([operation] {
      operation();
      return true;
    });
  }
  /// Runs the head of a queue, unless it waits for an event.
  static bool turn(std::deque<std::function<bool()>>& queue) {
    if (queue.empty() || !queue.front()()) return false;
    queue.pop_front();
    return true;
  }

  std::array<std::deque<std::function<bool()>>, 5> queues_;
  std::vector<bool> happened_;
  RandomStream lots_;
  std::uint64_t draws_ = 0;
  int queue_ = compute_queue;
};

}  // namespace mindpipe
