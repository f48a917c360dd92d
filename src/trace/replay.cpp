#include "trace/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "program/clock/clock.h"

namespace mindpipe {
namespace {

/// What a replay asks of the actions of a graph, each beside what is asked next: it goes through memory that
/// no cache holds.
class FlatGraph {
 public:
  struct Node {
    int rank = 0, first = 0;  ///< `first`: the rank's first action
    int meeting = -1, begins_next = -1;
    int followers = 0, end = 0;  ///< where the followers stand, as numbers in the list
    int waits = 0;               ///< for how many
  };

  explicit FlatGraph(const ReplayGraph& graph) : nodes_(graph.actions()) {
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      const int first = graph.first_of(rank), like = first_like(graph, rank);
      for (int action = first; action < graph.first_of(rank + 1); ++action) {
        const ListWait& wait = graph.wait_of(action);
        Node& node = nodes_[action];
        node = {.rank = rank,
                .first = first,
                .meeting = graph.meeting_of(action),
                .begins_next = graph.begins_next(action),
                .waits = static_cast<int>(wait.ended.size()) + (wait.begun >= 0 ? 1 : 0)};
        if (like < rank) {
          const Node& same = nodes_[graph.first_of(like) + action - first];
          node.followers = same.followers;
          node.end = same.end;
          continue;
        }
        node.followers = static_cast<int>(followers_.size());
        const std::vector<int>& own = graph.followers(action);
        followers_.insert(followers_.end(), own.begin(), own.end());
        node.end = static_cast<int>(followers_.size());
      }
    }
    first_members_.push_back(0);
    for (int meeting = 0; meeting < graph.meetings(); ++meeting) {
      const std::vector<int>& members = graph.members(meeting);
      members_.insert(members_.end(), members.begin(), members.end());
      first_members_.push_back(static_cast<int>(members_.size()));
    }
  }

  const Node& at(int action) const { return nodes_[action]; }
  std::span<const int> followers(const Node& node) const {
    return {followers_.data() + node.followers, followers_.data() + node.end};
  }
  std::span<const int> members(int meeting) const {
    return {members_.data() + first_members_[meeting], members_.data() + first_members_[meeting + 1]};
  }

 private:
  static int first_like(const ReplayGraph& graph, int rank) {
    int like = 0;
    while (!graph.runs_same_list(like, rank)) ++like;
    return like;
  }

  std::vector<Node> nodes_;
  std::vector<int> followers_, members_, first_members_;
};

/// The lists of all ranks as a source: every action lasts as long as its row says.
class AllLists final : public Source {
 public:
  AllLists(const ReplayGraph& graph, const ReplayTimes& times, int steps)
      : graph_(graph),
        flat_(graph),
        times_(times),
        steps_(steps),
        step_of_(graph.ranks(), -1),
        left_(graph.ranks()),
        waits_(graph.actions()),
        at_sum_(graph.actions()),
        sharers_(static_cast<std::size_t>(times.sums_of.back())),
        come_(steps, std::vector<Come>(graph.meetings())) {
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
  /// How many members of a meeting are known to come, and when the last of them does.
  struct Come {
    int members = 0;
    std::int64_t latest = 0;
  };

  const ReplayRow& row_of(int action) const { return times_.row(step_of_[flat_.at(action).rank]); }

  void begin_step(int rank) {
    if (++step_of_[rank] == steps_) return;
    const int first = graph_.first_of(rank), end = graph_.first_of(rank + 1);
    left_[rank] = end - first;
    if (first == end) step_of_[rank] = steps_;
    for (int action = first; action < end; ++action) {
      waits_[action] = flat_.at(action).waits;
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
    switch (over.phase) {
      case Phase::waits:
        return begin(action, clock);
      case Phase::lag:
        return release(flat_.at(action).first + flat_.at(action).begins_next);
      case Phase::before_sum:
        return meet_sharers(action, clock);
      case Phase::sum:
        ++at_sum_[action];
        return compute(action, 0, clock);
      case Phase::whole:
        return end(action, clock);
    }
  }

  /// Begins an action behind its lag, which is known as soon as its waits are over: so nothing but its end is
  /// an event, unless another action waits for its begin.
  void begin(int action, Clock& clock) {
    const FlatGraph::Node& node = flat_.at(action);
    const int step = step_of_[node.rank];
    const ReplayRow& row = times_.row(step);
    const std::int64_t lag = row.lag[action], start = clock.now() + lag;
    line_.starts[step][action] = start;
    if (node.begins_next >= 0) last(action, Phase::lag, lag, clock);
    if (node.meeting < 0) {
      if (times_.sums(action) == 0) return last(action, Phase::whole, lag + row.lasts[action], clock);
      at_sum_[action] = 0;
      return compute(action, lag, clock);
    }
    if (row.eager[action]) last(action, Phase::whole, lag + row.lasts[action], clock);
    Come& come = come_[step][node.meeting];
    come.latest = std::max(come.latest, start);
    const std::span<const int> members = flat_.members(node.meeting);
    if (++come.members < std::ssize(members)) return;
    for (const int member : members)
      if (!row.eager[member])
        last(member, Phase::whole, come.latest - clock.now() + row.lasts[member], clock);
  }

  /// Computes on, from `later` nanoseconds on, up to the next tensor sum or the end.
  void compute(int action, std::int64_t later, Clock& clock) {
    const ReplayRow& row = row_of(action);
    if (at_sum_[action] < times_.sums(action))
      return last(action, Phase::before_sum,
                  later + row.sums[times_.sums_of[action] + at_sum_[action]].before, clock);
    last(action, Phase::whole, later + row.lasts[action], clock);
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
    const FlatGraph::Node& node = flat_.at(action);
    line_.ends[step_of_[node.rank]][action] = clock.now();
    for (const int follower : flat_.followers(node)) release(node.first + follower);
    if (--left_[node.rank] == 0) begin_step(node.rank);
  }

  void release(int action) {
    if (--waits_[action] == 0) over_.push_back({action, Phase::waits});
  }

  const ReplayGraph& graph_;
  const FlatGraph flat_;
  const ReplayTimes& times_;
  const int steps_;
  std::vector<int> step_of_, left_;      ///< by rank: the step it is in, and how many actions have not ended
  std::vector<int> waits_, at_sum_;      ///< by action
  std::vector<int> sharers_;             ///< how many have come to each tensor sum
  std::vector<std::vector<Come>> come_;  ///< [step][meeting]
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
