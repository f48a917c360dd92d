#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "trace/replay.h"

namespace mindpipe {

/// A replay by events, the earliest first: each lets others begin that wait for nothing else any more. What
/// it says a replay in the order of the lists has to say too.
class ReplayByEvents {
 public:
  ReplayByEvents(const ReplayGraph& graph, const ReplayTimes& times, int steps)
      : graph_(graph), times_(times), steps_(steps), step_of_(graph.ranks(), -1), left_(graph.ranks()) {
    waits_.resize(graph.actions());
    at_sum_.resize(graph.actions());
    come_.assign(steps, std::vector<std::vector<int>>(graph.meetings()));
    line_.starts.assign(steps, std::vector<std::int64_t>(graph.actions(), -1));
    line_.ends = line_.starts;
    for (int rank = 0; rank < graph.ranks(); ++rank) begin_step(rank, 0);
  }

  Replayed run() {
    while (!events_.empty()) {
      const auto [time, what] = *events_.begin();
      events_.erase(events_.begin());
      happen(what, time);
    }
    return std::move(line_);
  }

 private:
  enum class Phase : std::uint8_t { may_begin, has_begun, at_sum, behind_sum, ends };
  struct Event {
    Phase phase;
    int action;
  };

  const ReplayRow& row_of(int action) const { return times_.row(step_of_[graph_.rank_of(action)]); }
  void at(std::int64_t time, Phase phase, int action) { events_.insert({time, {phase, action}}); }

  void begin_step(int rank, std::int64_t now) {
    if (++step_of_[rank] == steps_) return;
    left_[rank] = graph_.first_of(rank + 1) - graph_.first_of(rank);
    for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action) {
      const ListWait& wait = graph_.wait_of(action);
      waits_[action] = static_cast<int>(wait.ended.size()) + (wait.begun >= 0 ? 1 : 0);
      if (waits_[action] == 0) at(now + row_of(action).lag[action], Phase::has_begun, action);
    }
  }

  void happen(const Event& event, std::int64_t now) {
    const int action = event.action;
    switch (event.phase) {
      case Phase::may_begin:
        return at(now + row_of(action).lag[action], Phase::has_begun, action);
      case Phase::has_begun:
        return begin(action, now);
      case Phase::at_sum:
        return meet_sharers(action, now);
      case Phase::behind_sum:
        ++at_sum_[action];
        return compute(action, now);
      case Phase::ends:
        return end(action, now);
    }
  }

  void begin(int action, std::int64_t now) {
    const int step = step_of_[graph_.rank_of(action)], meeting = graph_.meeting_of(action);
    line_.starts[step][action] = now;
    at_sum_[action] = 0;
    each_other(
        action, [&](const ListWait& wait, int index) { return wait.begun == index ? 1 : 0; }, now);
    if (meeting < 0) return compute(action, now);
    if (row_of(action).eager[action]) at(now + row_of(action).lasts[action], Phase::ends, action);
    std::vector<int>& come = come_[step][meeting];
    come.push_back(action);
    if (come.size() < graph_.members(meeting).size()) return;
    for (const int member : come)
      if (!row_of(member).eager[member]) at(now + row_of(member).lasts[member], Phase::ends, member);
  }

  void compute(int action, std::int64_t now) {
    const bool meets = at_sum_[action] < times_.sums(action);
    const int sum = times_.sums_of[action] + at_sum_[action];
    at(now + (meets ? row_of(action).sums[sum].before : row_of(action).lasts[action]),
       meets ? Phase::at_sum : Phase::ends, action);
  }

  void meet_sharers(int action, std::int64_t now) {
    const int first = graph_.sharer(action, 0), number = at_sum_[action];
    int& come = sharers_[times_.sums_of[first] + number];
    if (++come < graph_.grid().tensor) return;
    come = 0;
    for (int tensor = 0; tensor < graph_.grid().tensor; ++tensor) {
      const int sharer = graph_.sharer(action, tensor);
      at(now + row_of(sharer).sums[times_.sums_of[sharer] + number].takes, Phase::behind_sum, sharer);
    }
  }

  void end(int action, std::int64_t now) {
    const int rank = graph_.rank_of(action);
    line_.ends[step_of_[rank]][action] = now;
    each_other(
        action,
        [](const ListWait& wait, int index) {
          return std::count(wait.ended.begin(), wait.ended.end(), index);
        },
        now);
    if (--left_[rank] == 0) begin_step(rank, now);
  }

  /// Takes from the waits of all actions of a rank those that are over with one.
  template <class HowOften>
  void each_other(int action, const HowOften& how_often, std::int64_t now) {
    const int rank = graph_.rank_of(action);
    for (int other = graph_.first_of(rank); other < graph_.first_of(rank + 1); ++other) {
      const auto over = static_cast<int>(how_often(graph_.wait_of(other), graph_.index_of(action)));
      if (over > 0 && (waits_[other] -= over) == 0) at(now, Phase::may_begin, other);
    }
  }

  const ReplayGraph& graph_;
  const ReplayTimes& times_;
  int steps_;
  std::vector<int> step_of_, left_, waits_, at_sum_;
  std::map<int, int> sharers_;
  std::vector<std::vector<std::vector<int>>> come_;  ///< [step][meeting]
  std::multimap<std::int64_t, Event> events_;
  Replayed line_;
};

}  // namespace mindpipe
