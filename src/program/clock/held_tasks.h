#pragma once
#include <cstdint>
#include <vector>

#include "program/clock/task.h"

namespace mindpipe {

/// A task that is under way, or waits for its way.
struct HeldTask {
  Task task;
  bool computes = false;  ///< a source began it for its rank
  int line = -1;          ///< -1: none
  int next = -1;          ///< the task that waits behind it; for a free place, the next free one
  int turns = 1;          ///< parts that travel one by one, or turns of sums inside a pass
  int over = 0;           ///< turns that have ended
  bool travels = false;   ///< sums of a turn, inside a pass
  bool has_left = false;  ///< the port: when it ends is known
  TurnsLeft at_port;
};

/// Tasks that a clock holds, by number; a number that is given back is given out again.
class HeldTasks {
 public:
  int hold(const Task& task) {
    if (free_ < 0) {
      held_.push_back({.task = task});
      return static_cast<int>(held_.size()) - 1;
    }
    const int held = free_;
    free_ = held_[held].next;
    held_[held] = {.task = task};
    return held;
  }
  void give_back(int held) {
    held_[held].next = free_;
    free_ = held;
  }
  HeldTask& operator[](int held) { return held_[held]; }
  const HeldTask& operator[](int held) const { return held_[held]; }
  /// Null of -1.
  const Task* task_at(int held) const { return held < 0 ? nullptr : &held_[held].task; }

 private:
  std::vector<HeldTask> held_;
  int free_ = -1;  ///< the first free place
};

}  // namespace mindpipe
