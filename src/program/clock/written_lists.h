#pragma once
#include <tuple>
#include <vector>

#include "program/clock/simulate.h"
#include "program/clock/source.h"
#include "program/clock/task_graph.h"

namespace mindpipe {

/// Lists as a source: an action begins when those before it in its queue and its `after` have ended, a
/// communication when it may on all of its ranks. A task has a number alone.
class WrittenLists final : public Source {
 public:
  WrittenLists(const Program& program, const Durations& durations);

  bool open(Clock& clock) override;
  Answer next(int, const Clock&, Task&, WaitReason&) override { return Answer::waits; }
  void ended(const Task& task, Clock& clock) override;

  /// The actions that a task stands for; a send stands before its receive.
  const std::vector<Place>& members(const Task& task) const { return graph_.members[task.number]; }
  const Action& head(const Task& task) const { return program_.at(members(task).front()); }
  /// How many tasks there are.
  std::int64_t count() const { return static_cast<std::int64_t>(graph_.members.size()); }

 private:
  std::tuple<int, int, int, int> turn(int number) const;

  const Program& program_;
  const Durations& durations_;
  TaskGraph graph_;
  std::vector<int> waits_;  ///< for each task, how many it waits for
  std::vector<int> ready_;  ///< tasks that may begin at this moment
};

}  // namespace mindpipe
