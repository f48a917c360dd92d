#include "trace/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

namespace mindpipe {
namespace {

/// When the actions of a step begin and end, by number; -1: never.
struct StepLine {
  explicit StepLine(const ReplayGraph& graph) : starts(graph.actions(), -1), ends(starts) {}

  std::vector<std::int64_t> starts, ends;
};

/// Runs one step after the other: what an action waits for has its times already, so each is looked at once.
class AllRanks {
 public:
  AllRanks(const ReplayGraph& graph, const ReplayTimes& times)
      : graph_(graph), times_(times), free_(graph.ranks(), 0), at_sum_(graph.grid().tensor, 0) {}

  /// Runs the next step.
  void run(StepLine& line) {
    const ReplayRow& row = times_.row(step_++);
    for (const auto& [place, first, end] : graph_.order().turns) {
      begin(place, row, line);
      for (int meeting = first; meeting < end; ++meeting) meet(graph_.members(meeting), row, line);
    }
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action)
        free_[rank] = std::max(free_[rank], line.ends[action]);
  }
  /// When the last action of all steps ended.
  std::int64_t end() const { return *std::max_element(free_.begin(), free_.end()); }

 private:
  /// Lets an entry begin on all ranks that run its list, and end where nobody else has to come.
  void begin(const Place& place, const ReplayRow& row, StepLine& line) {
    const ListWait& wait = graph_.order().waits[place.rank][place.index];
    const std::vector<int>& ranks = graph_.order().ranks[place.rank];
    for (const int rank : ranks) {
      const int first = graph_.first_of(rank), action = first + place.index;
      std::int64_t free = free_[rank];
      for (const int before : wait.ended) free = std::max(free, line.ends[first + before]);
      if (wait.begun >= 0) free = std::max(free, line.starts[first + wait.begun]);
      line.starts[action] = free + row.lag[action];
      line.ends[action] = line.starts[action] + row.lasts[action];
    }
    const std::size_t sharers = at_sum_.size();
    for (std::size_t first = 0; first < ranks.size(); first += sharers)
      if (times_.sums(graph_.first_of(ranks[first]) + place.index) > 0)
        meet_sharers(std::span(ranks).subspan(first, sharers), place.index, row, line);
  }

  /// Lets those that share a pass meet at each of its tensor sums.
  void meet_sharers(std::span<const int> ranks, int index, const ReplayRow& row, StepLine& line) {
    const auto action_of = [&](std::size_t sharer) { return graph_.first_of(ranks[sharer]) + index; };
    const int sums = times_.sums(action_of(0));
    for (std::size_t sharer = 0; sharer < ranks.size(); ++sharer)
      at_sum_[sharer] = line.starts[action_of(sharer)];
    const auto sum_of = [&](std::size_t sharer, int sum) {
      return row.sums[times_.sums_of[action_of(sharer)] + sum];
    };
    for (int sum = 0; sum < sums; ++sum) {
      std::int64_t met = 0;
      for (std::size_t sharer = 0; sharer < ranks.size(); ++sharer)
        met = std::max(met, at_sum_[sharer] + sum_of(sharer, sum).before);
      for (std::size_t sharer = 0; sharer < ranks.size(); ++sharer)
        at_sum_[sharer] = met + sum_of(sharer, sum).takes;
    }
    for (std::size_t sharer = 0; sharer < ranks.size(); ++sharer)
      line.ends[action_of(sharer)] = at_sum_[sharer] + row.lasts[action_of(sharer)];
  }

  /// Lets a communication end on all of its members, but on those that wait for nobody.
  static void meet(std::span<const int> members, const ReplayRow& row, StepLine& line) {
    std::int64_t latest = 0;
    for (const int member : members) latest = std::max(latest, line.starts[member]);
    for (const int member : members)
      if (!row.eager[member]) line.ends[member] = latest + row.lasts[member];
  }

  const ReplayGraph& graph_;
  const ReplayTimes& times_;
  std::size_t step_ = 0;
  std::vector<std::int64_t> free_;    ///< by rank: when all that it has run had ended
  std::vector<std::int64_t> at_sum_;  ///< by tensor coordinate: when it goes on behind a sum
};

std::int64_t period_between(std::int64_t first_end, std::int64_t end, std::int64_t steps, Counted counted) {
  return counted == Counted::all || steps == 1 ? end / steps : (end - first_end) / (steps - 1);
}

}  // namespace

std::int64_t Replayed::end_of_step(std::size_t step) const {
  return *std::max_element(ends[step].begin(), ends[step].end());
}

std::int64_t Replayed::period(Counted counted) const {
  return period_between(end_of_step(0), end_of_step(ends.size() - 1), std::ssize(ends), counted);
}

Replayed replay(const ReplayGraph& graph, const ReplayTimes& times, int steps) {
  AllRanks ranks(graph, times);
  Replayed replayed{.finished = graph.order().ends};
  for (int step = 0; step < steps; ++step) {
    StepLine line(graph);
    ranks.run(line);
    replayed.starts.push_back(std::move(line.starts));
    replayed.ends.push_back(std::move(line.ends));
  }
  return replayed;
}

std::int64_t replayed_period(const ReplayGraph& graph, const ReplayTimes& times, int steps, Counted counted) {
  AllRanks ranks(graph, times);
  StepLine line(graph);
  ranks.run(line);
  const std::int64_t first_end = ranks.end();
  for (int step = 1; step < steps; ++step) ranks.run(line);
  return period_between(first_end, ranks.end(), steps, counted);
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
