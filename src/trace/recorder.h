#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mindpipe {

/// Start and end of every action of the last steps; whole steps stand in a ring that is allocated once.
class Recorder {
 public:
  struct Times {
    std::int64_t start = 0, end = 0;
  };
  /// A sum between the ranks that share a product, inside a pass.
  struct Sum {
    const char* operation = "";
    std::int64_t start = 0, end = 0, bytes = 0;
  };
  Recorder(std::size_t actions, std::size_t steps)
      : actions_(actions), times_(actions * steps), sums_(steps), steps_(steps) {}

  void begin_step(std::int64_t step) {
    place_ = count_++ % steps_;
    row_ = place_ * actions_;
    last_step_ = step;
    sums_[place_].clear();
    for (std::size_t i = 0; i < actions_; ++i) times_[row_ + i] = {};
  }
  void start(int action, std::int64_t at) { times_[row_ + action].start = at; }
  void end(int action, std::int64_t at) { times_[row_ + action].end = at; }
  /// Sets the times of an action of the step that began `ago` steps before the last, if it is still held.
  void set(std::size_t ago, std::size_t action, const Times& times) {
    if (ago < held()) times_[(count_ - 1 - ago) % steps_ * actions_ + action] = times;
  }
  void add(const Sum& sum) { sums_[place_].push_back(sum); }

  /// Number of steps that are still held, the `steps` last ones at most.
  std::size_t held() const { return std::min(count_, steps_); }
  std::int64_t first_held_step() const { return last_step_ - static_cast<std::int64_t>(held()) + 1; }
  const Times& times(std::size_t held_index, std::size_t action) const {
    return times_[(count_ - held() + held_index) % steps_ * actions_ + action];
  }
  const std::vector<Sum>& sums(std::size_t held_index) const {
    return sums_[(count_ - held() + held_index) % steps_];
  }
  std::size_t actions() const { return actions_; }

 private:
  std::size_t actions_;
  std::vector<Times> times_;
  std::vector<std::vector<Sum>> sums_;       ///< each step's sums, in order
  std::size_t steps_, place_ = 0, row_ = 0;  ///< place of the step under way in sums_ and in times_
  std::size_t count_ = 0;
  std::int64_t last_step_ = 0;
};

}  // namespace mindpipe
