#pragma once
#include <tuple>
#include <vector>

#include "program/clock/simulate.h"
#include "program/clock/source.h"
#include "program/clock/task_graph.h"

namespace mindpipe {

/// Lists as a source: an action begins when those before it in its queue and its `after` have ended, a
/// communication when it may on all of its ranks. Of sums and gathers of a queue two may be under way, as an
/// executor has them. A task says its number, and what it asks of ports.
class WrittenLists final : public Source {
 public:
  WrittenLists(const Program& program, const Durations& durations, const Network& network);

  bool open(Clock& clock) override;
  Answer next(int, const Clock&, Task&, WaitReason&) override { return Answer::waits; }
  void ended(const Task& task, Clock& clock) override;

  /// The actions that a task stands for; a send stands before its receive.
  const std::vector<Place>& members(const Task& task) const { return members(task.number); }
  const std::vector<Place>& members(int number) const { return graph_.members[number]; }
  /// How many tasks there are.
  std::int64_t count() const { return static_cast<std::int64_t>(graph_.members.size()); }
  /// When each task began and ended.
  const std::vector<Span>& spans() const { return spans_; }

 private:
  std::tuple<int, int, int, int> turn(int number) const;
  Task task_of(int number) const;
  void begin_ready(Clock& clock);

  const Program& program_;
  const Durations& durations_;
  const Network& network_;
  bool tensor_meets_ = false;
  TaskGraph graph_;
  std::vector<int> waits_;  ///< for each task, how many it waits for
  std::vector<int> ready_;  ///< tasks that may begin at this moment
  std::vector<Span> spans_;
};

}  // namespace mindpipe
