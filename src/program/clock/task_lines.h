#pragma once
#include <vector>

#include "program/clock/task.h"

namespace mindpipe {

/// Lines of tasks that leave ranks, by number: one for each way of a rank, from its first task on.
class TaskLines {
 public:
  /// Where a task leaves a rank; those of one way follow each other, part by part.
  struct Way {
    TaskKind kind = TaskKind::message;
    int peer = -1;
    bool with_forward = true;
    bool operator==(const Way&) const = default;
  };
  struct Line {
    Way way;
    int first = -1, last = -1;  ///< under way; who came last
    int next = -1, part = 0;    ///< the task whose part begins next, and which
    int under_way = 0;          ///< parts
  };

  explicit TaskLines(int ranks) : of_rank_(ranks) {}

  Line& operator[](int line) { return lines_[line]; }
  const Line& operator[](int line) const { return lines_[line]; }
  /// The line of a rank's way; -1: nothing was put there.
  int of(int rank, const Way& way) const {
    for (const int line : of_rank_[rank])
      if (lines_[line].way == way) return line;
    return -1;
  }
  /// The line of a rank's way, which is made where there is none.
  int made_for(int rank, const Way& way) {
    if (const int line = of(rank, way); line >= 0) return line;
    of_rank_[rank].push_back(static_cast<int>(lines_.size()));
    lines_.push_back({.way = way});
    return of_rank_[rank].back();
  }

 private:
  std::vector<Line> lines_;
  std::vector<std::vector<int>> of_rank_;
};

}  // namespace mindpipe
