#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "program/clock/clock.h"
#include "program/schedules/step_tasks.h"

namespace mindpipe {

/// What is chosen for a step beside its order.
struct StepRooms {
  std::map<RingPair, int> rings;         ///< buffers on either side; none: enough for all
  std::vector<GradientTurns> gradients;  ///< turns of each rank; none: as they were before
};

/// A step as a source: what stands first in a line begins once what it needs has ended.
class StepOrder final : public Source {
 public:
  /// `outline` and `prices` stay as they are.
  StepOrder(const Outline& outline, const PriceList& prices, const Order& order);

  /// Runs the step in these rooms, and calls begun(task) for all that begins, in that order. Returns when all
  /// has ended; -1: it stands still.
  template <class Begun>
  std::int64_t run(const StepRooms& rooms, const Begun& begun) {
    begin(rooms);
    Clock clock(0);
    clock.run(*this, begun);
    return ended_ == count_ ? clock.now() : -1;
  }
  std::int64_t run(const StepRooms& rooms) {
    return run(rooms, [](const Task&) {});
  }
  /// How many buffers of each pair of rings were in use at a time when the step was last run, at most.
  std::map<RingPair, int> most_held() const;
  const StepTasks& tasks() const { return tasks_; }

  bool open(Clock& clock) override;
  Answer next(int, const Clock&, Task&, WaitReason&) override { return Answer::waits; }
  void ended(const Task& task, Clock& clock) override;

 private:
  struct Line {
    int begun = 0, ended = 0;  ///< items
    bool is_candidate = false;
    std::vector<int> watchers;  ///< lines that need it
  };
  void watch();
  void begin(const StepRooms& rooms);
  void place_gradients(int rank, const GradientTurns& turns);
  void place_messages(const RingPair& pair, const StepRing& ring, int depth);
  void make_candidate(int line);
  void begin_candidates(Clock& clock);
  int most_under_way(int line) const;
  const StepItem& head(int line) const { return tasks_.lines[line][lines_[line].begun]; }
  bool may_begin(int line) const;
  std::tuple<int, int, int, int, Payload> turn(int line) const;

  StepTasks tasks_;
  std::vector<Line> lines_;
  int count_ = 0, ended_ = 0;   ///< items
  int ended_before_moves_ = 0;  ///< items of lines before those of moves
  std::vector<int> candidates_;
};

}  // namespace mindpipe
