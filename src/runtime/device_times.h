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
  /// `most`: actions of a step, or of a piece of a list that grows.
  DeviceTimes(Backend& backend, std::size_t most);

  /// How many marks the backend has to keep: the step that was taken last is asked once more, for where the
  /// next one begins.
  std::size_t marks() const { return (kept + 1) * (2 * most_ + 1); }
  std::size_t most() const { return most_; }

  /// Marks the begin of a step, or of a piece: the `actions` entries of the list from `first` on. Called
  /// behind what keeps a step apart from the one before.
  void begin(std::size_t first, std::size_t actions);
  void before(int action, Queue queue) { marks_of(action).start = backend_.mark(queue); }
  void behind(int action, Queue queue) { marks_of(action).end = backend_.mark(queue); }
  /// The list has lost its first `dropped` actions, of which none is in a piece that has not been taken.
  void drop(std::size_t dropped);

  /// How many steps or pieces have been begun and not been taken: at most `kept`.
  std::size_t open() const { return static_cast<std::size_t>(begun_ - taken_); }
  /// The times of the oldest of them, on the host's clock. All of it has happened.
  struct Piece {
    std::size_t first = 0;                 ///< first action of the piece in the list
    std::vector<Recorder::Times> actions;  ///< whose times these are
  };
  const Piece& take_oldest();
  static constexpr std::int64_t kept = 3;

 private:
  struct Marks {
    std::uint64_t start = 0, end = 0;
  };
  struct Row {
    std::uint64_t begin = 0;
    std::int64_t put_ns = 0;  ///< when the host put it in
    std::size_t first = 0;    ///< action of the list
    bool is_alone = false;    ///< nothing was under way
    std::vector<Marks> actions;
  };
  Row& open_row() { return rows_[(begun_ - 1) % kept]; }
  Marks& marks_of(int action) { return open_row().actions[action - open_row().first]; }

  Backend& backend_;
  std::array<Row, kept> rows_;
  std::size_t most_;
  Piece taken_last_;
  std::int64_t begun_ = 0, taken_ = 0;
  std::uint64_t known_mark_ = 0;  ///< the beginning of the last step that was taken, and its time
  std::int64_t known_ns_ = 0;
};

}  // namespace mindpipe
