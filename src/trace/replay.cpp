#include "trace/replay.h"

#include <fmt/core.h>

#include <algorithm>

#include "program/clock/clock.h"

namespace mindpipe {
namespace {

/// The lists of all ranks as a source: every action lasts as long as its row says.
class AllLists final : public Source {
 public:
  AllLists(const ReplayGraph& graph, const ReplayTimes& times, int steps)
      : graph_(graph),
        times_(times),
        steps_(steps),
        step_of_(graph.ranks(), -1),
        left_(graph.ranks()),
        waits_(graph.actions()),
        at_sum_(graph.actions()),
        sharers_(static_cast<std::size_t>(times.sums_of.back())),
        posted_(steps, std::vector<int>(graph.meetings())) {
    line_.starts.assign(steps, std::vector<std::int64_t>(graph.actions(), -1));
    line_.ends = line_.starts;
    for (int rank = 0; rank < graph.ranks(); ++rank) begin_step(rank);
  }

  bool open(Clock& clock) override {
    while (!over_.empty()) {
      const Over over = over_.back();
      over_.pop_back();
      go_on(over, clock);
    }
    return true;
  }
  Answer next(int, const Clock&, Task&, WaitReason&) override { return Answer::waits; }
  void ended(const Task& task, Clock&) override {
    over_.push_back({task.number, static_cast<Phase>(task.owner.number)});
  }

  Replayed take() {
    line_.finished = std::all_of(step_of_.begin(), step_of_.end(), [&](int step) { return step == steps_; });
    return std::move(line_);
  }

 private:
  /// What of an action is over.
  enum class Phase : std::uint8_t { waits, lag, before_sum, sum, whole };
  struct Over {
    int action;
    Phase phase;
  };

  const ReplayRow& row_of(int action) const { return times_.row(step_of_[graph_.rank_of(action)]); }

  void begin_step(int rank) {
    if (++step_of_[rank] == steps_) return;
    const int first = graph_.first_of(rank), end = graph_.first_of(rank + 1);
    left_[rank] = end - first;
    if (first == end) step_of_[rank] = steps_;
    for (int action = first; action < end; ++action) {
      const ListWait& wait = graph_.wait_of(action);
      waits_[action] = static_cast<int>(wait.ended.size()) + (wait.begun >= 0 ? 1 : 0);
      if (waits_[action] == 0) over_.push_back({action, Phase::waits});
    }
  }

  void last(int action, Phase phase, std::int64_t lasts, Clock& clock) {
    if (lasts <= 0) return over_.push_back({action, phase});
    Task task{.kind = TaskKind::update};
    task.owner.number = static_cast<std::int64_t>(phase);
    task.number = action;
    task.lasts = lasts;
    clock.begin(task);
  }

  void go_on(const Over& over, Clock& clock) {
    const int action = over.action;
    const ReplayRow& row = row_of(action);
    switch (over.phase) {
      case Phase::waits:
        return last(action, Phase::lag, row.lag[action], clock);
      case Phase::lag:
        return begin(action, clock);
      case Phase::before_sum:
        return meet_sharers(action, clock);
      case Phase::sum:
        ++at_sum_[action];
        return compute(action, clock);
      case Phase::whole:
        return end(action, clock);
    }
  }

  void begin(int action, Clock& clock) {
    const int step = step_of_[graph_.rank_of(action)];
    line_.starts[step][action] = clock.now();
    if (const int next = graph_.begins_next(action); next >= 0)
      release(action - graph_.index_of(action) + next);
    const int meeting = graph_.meeting_of(action);
    if (meeting < 0) {
      at_sum_[action] = 0;
      return compute(action, clock);
    }
    const ReplayRow& row = row_of(action);
    if (row.eager[action]) last(action, Phase::whole, row.lasts[action], clock);
    const std::vector<int>& members = graph_.members(meeting);
    if (++posted_[step][meeting] < std::ssize(members)) return;
    for (const int member : members)
      if (!times_.row(step).eager[member]) last(member, Phase::whole, times_.row(step).lasts[member], clock);
  }

  void compute(int action, Clock& clock) {
    const ReplayRow& row = row_of(action);
    if (at_sum_[action] < times_.sums(action))
      return last(action, Phase::before_sum, row.sums[times_.sums_of[action] + at_sum_[action]].before,
                  clock);
    last(action, Phase::whole, row.lasts[action], clock);
  }

  void meet_sharers(int action, Clock& clock) {
    const int first = graph_.sharer(action, 0), sum = at_sum_[action];
    int& come = sharers_[times_.sums_of[first] + sum];
    if (++come < graph_.grid().tensor) return;
    come = 0;
    for (int tensor = 0; tensor < graph_.grid().tensor; ++tensor) {
      const int sharer = graph_.sharer(action, tensor);
      last(sharer, Phase::sum, row_of(sharer).sums[times_.sums_of[sharer] + sum].takes, clock);
    }
  }

  void end(int action, Clock& clock) {
    const int rank = graph_.rank_of(action), first = action - graph_.index_of(action);
    line_.ends[step_of_[rank]][action] = clock.now();
    for (const int follower : graph_.followers(action)) release(first + follower);
    if (--left_[rank] == 0) begin_step(rank);
  }

  void release(int action) {
    if (--waits_[action] == 0) over_.push_back({action, Phase::waits});
  }

  const ReplayGraph& graph_;
  const ReplayTimes& times_;
  const int steps_;
  std::vector<int> step_of_, left_;  ///< by rank: the step it is in, and how many actions have not ended
  std::vector<int> waits_, at_sum_;  ///< by action
  std::vector<int> sharers_;         ///< how many have come to each tensor sum
  std::vector<std::vector<int>> posted_;
  std::vector<Over> over_;
  Replayed line_;
};

}  // namespace

std::int64_t Replayed::end_of_step(std::size_t step) const {
  return *std::max_element(ends[step].begin(), ends[step].end());
}

std::int64_t Replayed::period(Counted counted) const {
  const std::int64_t end = end_of_step(ends.size() - 1), steps = std::ssize(ends);
  if (counted == Counted::all || steps == 1) return end / steps;
  return (end - end_of_step(0)) / (steps - 1);
}

Replayed replay(const ReplayGraph& graph, const ReplayTimes& times, int steps) {
  AllLists lists(graph, times, steps);
  Clock clock(0);
  clock.run(lists, [](const Task&) {});
  return lists.take();
}

ReplayMatch compare(const StepTrace& trace, const ReplayGraph& graph, const Replayed& replayed,
                    std::int64_t bound) {
  std::int64_t zero = trace.ranks.front().steps.front().front().start, first_end = 0, last_end = 0;
  const auto at = [&](std::size_t step, int action) -> const Recorder::Times& {
    return trace.ranks[graph.rank_of(action)].steps[step][graph.index_of(action)];
  };
  for (int action = 0; action < graph.actions(); ++action) {
    zero = std::min(zero, at(0, action).start);
    first_end = std::max(first_end, at(0, action).end);
    last_end = std::max(last_end, at(trace.steps.size() - 1, action).end);
  }
  ReplayMatch identity{.replayed = replayed.period()};
  const std::int64_t steps = std::ssize(trace.steps);
  identity.measured = steps == 1 ? last_end - zero : (last_end - first_end) / (steps - 1);
  std::int64_t when = 0;
  for (std::size_t step = 0; step < trace.steps.size(); ++step)
    for (int action = 0; action < graph.actions(); ++action) {
      const std::int64_t measured = at(step, action).start,
                         off = replayed.starts[step][action] + zero - measured;
      identity.off = std::max(identity.off, std::abs(off));
      if (std::abs(off) <= bound || (!identity.first_off.empty() && measured >= when)) continue;
      when = measured;
      identity.first_off = fmt::format(
          "in step {} the {} begins {:.3f} us {} than measured", trace.steps[step], graph.name_of(action),
          static_cast<double>(std::abs(off)) / 1e3, off < 0 ? "earlier" : "later");
    }
  return identity;
}

}  // namespace mindpipe
