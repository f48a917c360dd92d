#pragma once
#include <algorithm>
#include <cstdint>
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

/// Start and end of every action of the last steps of a list, in rows. Rows of a list that is run again and
/// again stand in a ring that is allocated once. A list that grows gets a row for each stretch, as long as
/// that is; what has not ended is recorded however many stretches have come since.
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
  /// For a list that grows; holds the last `stretches`.
  explicit Recorder(std::size_t stretches) : rows_(stretches) {}

  void begin_step(std::int64_t step) {
    place_ = count_++ % rows_.size();
    last_step_ = step;
    Row& row = rows_[place_];
    begin_ = row.begin;
    row.sums.clear();
    for (std::size_t i = 0; i < row.actions; ++i) times_[row.begin + i] = {};
  }
  /// The list has lost its first `dropped` actions and has a stretch of `actions` more, numbered from 0 on as
  /// a step is. Sums that come from now on are its.
  void begin_stretch(std::size_t actions, std::size_t dropped) {
    begin_ += dropped;
    place_ = count_++ % rows_.size();
    last_step_ = static_cast<std::int64_t>(count_) - 1;
    Row& row = rows_[place_];
    row.begin = times_.size();
    row.actions = actions;
    row.sums.clear();
    times_.resize(times_.size() + actions);
    forget();
  }
  /// `action`: its number in the list.
  void start(int action, std::int64_t at) { times_[begin_ + action].start = at; }
  void end(int action, std::int64_t at) { times_[begin_ + action].end = at; }
  /// Sets the times of an action of the step that began `ago` steps before the last, if it is still held.
  void set(std::size_t ago, std::size_t action, const Times& times) {
    if (ago < held()) times_[rows_[(count_ - 1 - ago) % rows_.size()].begin + action] = times;
  }
  void add(const Sum& sum) { rows_[place_].sums.push_back(sum); }
  /// Sets what the system counted in the step that was begun last.
  void set_host(const HostCounts& counts) { rows_[place_].host = counts; }

  /// Times of an action by its number in the list.
  const Times& of_list(std::size_t action) const { return times_[begin_ + action]; }

  /// Number of steps that are still held, the `steps` last ones at most.
  std::size_t held() const { return std::min(count_, rows_.size()); }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t first_held_step() const { return last_step_ - static_cast<std::int64_t>(held()) + 1; }
  const Times& times(std::size_t held_index, std::size_t action) const {
    return times_[row(held_index).begin + action];
  }
  const std::vector<Sum>& sums(std::size_t held_index) const { return row(held_index).sums; }
  const HostCounts& host(std::size_t held_index) const { return row(held_index).host; }
  std::size_t actions(std::size_t held_index) const { return row(held_index).actions; }
  /// How many times there is room for.
  std::size_t capacity() const { return times_.capacity(); }

 private:
  struct Row {
    std::size_t begin = 0, actions = 0;  ///< in times_
    std::vector<Sum> sums = {};          ///< in order
    HostCounts host = {};
  };
  const Row& row(std::size_t held_index) const {
    return rows_[(count_ - held() + held_index) % rows_.size()];
  }
  /// Gives back what lies before the rows that are held and before the list, once that is most of it.
  void forget() {
    const std::size_t gone = std::min(begin_, row(0).begin);
    if (2 * gone <= times_.size()) return;
    times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(gone));
    begin_ -= gone;
    for (std::size_t i = 0; i < held(); ++i) rows_[(count_ - 1 - i) % rows_.size()].begin -= gone;
  }

  std::vector<Times> times_;
  std::vector<Row> rows_;
  std::size_t begin_ = 0;  ///< place of the list's first action in times_
  std::size_t place_ = 0;  ///< place of the step under way in rows_
  std::size_t count_ = 0;
  std::int64_t last_step_ = 0;
};

}  // namespace mindpipe
