#pragma once
#include <array>
#include <vector>

#include "backend.h"
#include "trace/recorder.h"

namespace mindpipe {

/// When the actions of a rank ran on a device that runs behind the host: marks before and behind each, whose
/// times are asked for a few steps later, when they have happened.
class DeviceTimes {
 public:
  DeviceTimes(Backend& backend, std::size_t actions);

  /// How many marks the backend has to keep: the step that was taken last is asked once more, for where the
  /// next one begins.
  std::size_t marks() const { return (kept + 1) * (2 * times_.size() + 1); }

  /// Marks a step's begin; called behind what keeps the step apart from the one before.
  void begin_step();
  void before(int action, Queue queue) { open_row().actions[action].start = backend_.mark(queue); }
  void behind(int action, Queue queue) { open_row().actions[action].end = backend_.mark(queue); }

  /// How many steps have been begun and not been taken: at most `kept`.
  std::size_t open() const { return static_cast<std::size_t>(begun_ - taken_); }
  /// The times of the oldest of them, on the host's clock. All of it has happened.
  const std::vector<Recorder::Times>& take_oldest();
  static constexpr std::int64_t kept = 3;

 private:
  struct Marks {
    std::uint64_t start = 0, end = 0;
  };
  struct Row {
    std::uint64_t begin = 0;
    std::int64_t put_ns = 0;  ///< when the host put it in
    std::vector<Marks> actions;
  };
  Row& open_row() { return rows_[(begun_ - 1) % kept]; }

  Backend& backend_;
  std::array<Row, kept> rows_;
  std::vector<Recorder::Times> times_;
  std::int64_t begun_ = 0, taken_ = 0;
  std::uint64_t known_mark_ = 0;  ///< the beginning of the last step that was taken, and its time
  std::int64_t known_ns_ = 0;
};

}  // namespace mindpipe
