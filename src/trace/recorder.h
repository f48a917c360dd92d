#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace mindpipe {

/// What became of a rank's process in a step, as the system counts it.
struct HostCounts {
  std::int64_t run_delay = 0;   ///< nanoseconds in which it could have run, and others did
  std::int64_t switches = 0;    ///< how often it was made to leave its processor
  std::int64_t faults = 0;      ///< pages that were read from a disk
  std::int64_t migrations = 0;  ///< 1: it ended on another processor than it began on
  std::int64_t outside = 0;     ///< nanoseconds since its step before
  bool operator==(const HostCounts&) const = default;
};

/// Start and end of every action of a list. Of a list that is run again and again the last steps are held, in
/// a ring of rows that is allocated once; of a list that grows the one row is the list, as far as that is
/// held.
class Recorder {
 public:
  struct Times {
    std::int64_t start = 0, end = 0;
  };
  /// A sum between the ranks that share a product, inside a pass.
  struct Sum {
    const char* operation = "";
    std::int64_t start = 0, end = 0, bytes = 0;
    int action = -1;  ///< number in the list of the action that it ran in
  };
  /// For a list of so many actions that is run again and again; holds the last `steps`.
  Recorder(std::size_t actions, std::size_t steps) : times_(actions * steps), rows_(steps) {
    for (std::size_t i = 0; i < steps; ++i) rows_[i] = {i * actions, actions, {}, {}};
  }
  /// For a list that grows.
  Recorder() : rows_(1), count_(1) {}

  void begin_step(std::int64_t step) {
    place_ = count_++ % rows_.size();
    last_step_ = step;
    Row& row = rows_[place_];
    begin_ = row.begin;
    row.sums.clear();
    for (std::size_t i = 0; i < row.actions; ++i) times_[row.begin + i] = {};
  }
  /// The list has lost its first `dropped` actions and has `actions` more. Sums that come from now on are
  /// these actions'.
  void grow(std::size_t actions, std::size_t dropped) {
    times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(dropped));
    times_.resize(times_.size() + actions);
    rows_[0].sums.clear();
  }
  /// `action`: its number in the list.
  void start(int action, std::int64_t at) { times_[begin_ + action].start = at; }
  void end(int action, std::int64_t at) { times_[begin_ + action].end = at; }
  /// Sets the times of an action of the step that began `ago` steps before the last, if it is still held.
  void set(std::size_t ago, std::size_t action, const Times& times) {
    if (ago < held()) times_[rows_[(count_ - 1 - ago) % rows_.size()].begin + action] = times;
  }
  void add(const Sum& sum) { rows_[place_].sums.push_back(sum); }
  /// Gives away the sums of a list that grows.
  std::vector<Sum> take_sums() { return std::exchange(rows_[0].sums, {}); }
  /// Sets what the system counted in the step that was begun last.
  void set_host(const HostCounts& counts) { rows_[place_].host = counts; }

  /// Number of steps that are still held, the `steps` last ones at most.
  std::size_t held() const { return std::min(count_, rows_.size()); }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t first_held_step() const { return last_step_ - static_cast<std::int64_t>(held()) + 1; }
  const Times& times(std::size_t held_index, std::size_t action) const {
    return times_[row(held_index).begin + action];
  }
  const std::vector<Sum>& sums(std::size_t held_index) const { return row(held_index).sums; }
  const HostCounts& host(std::size_t held_index) const { return row(held_index).host; }
  /// How many times there is room for.
  std::size_t capacity() const { return times_.capacity(); }

 private:
  struct Row {
    std::size_t begin = 0, actions = 0;  ///< in times_, of a step
    std::vector<Sum> sums = {};          ///< in order
    HostCounts host = {};
  };
  const Row& row(std::size_t held_index) const {
    return rows_[(count_ - held() + held_index) % rows_.size()];
  }

  std::vector<Times> times_;
  std::vector<Row> rows_;
  std::size_t begin_ = 0;  ///< place of the first action of the step under way in times_
  std::size_t place_ = 0;  ///< place of the step under way in rows_
  std::size_t count_ = 0;
  std::int64_t last_step_ = 0;
};

}  // namespace mindpipe
