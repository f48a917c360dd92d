#include "program/clock/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "program/clock/task_graph.h"

namespace mindpipe {

const Link& Network::of(const Action& action, int rank) const {
  switch (action.group) {
    case Members::data:
      return data;
    case Members::grid:
      return grid;
    case Members::none:
      break;
  }
  return sends(action) ? link(rank, action.peer) : link(action.peer, rank);
}

namespace {

/// How long the blocks of a pass take, with its tensor sums and the zeroing of gradients that it clears.
std::int64_t time_of_pass(const PassTraits& traits, const Action& pass, const Outline& outline,
                          const Network& network) {
  std::int64_t time = pass.sums > 0 ? network.tensor_time(pass) : 0;
  for (int block = pass.first; block < pass.last; ++block) time += outline.cost(block).*traits.time;
  if (pass.clears)
    for (const UnitUse& use : outline.uses_in(pass.first, pass.last)) time += outline.units[use.unit].clear;
  return time;
}

std::int64_t time_of(const Action& action, const Outline& outline, const Network& network, int rank) {
  const auto travel = [&] { return network.of(action, rank).time(action.bytes); };
  return by_shape(
      action.kind, [&](const PassTraits& pass) { return time_of_pass(pass, action, outline, network); },
      [&](const UnitTraits& work) { return outline.units[action.unit].*work.time; },
      [&](const MessageTraits&) { return travel(); },
      [&](const CollectiveTraits&) { return action.bytes > 0 ? travel() : 0; });
}

/// The clock: starts whatever may start, at the earliest time, higher classes first.
class Simulation {
 public:
  Simulation(const Program& program, const Durations& durations, const Network& network)
      : program_(program),
        durations_(durations),
        network_(network),
        graph_(make_task_graph(program)),
        waits_(graph_.predecessors),
        stretch_(waits_.size()),
        asked_(waits_.size()) {
    for (const auto& list : program.ranks) {
      line_.spans.emplace_back(list.size());
      line_.started.emplace_back(list.size(), -1);
    }
    line_.busy = line_.sums = std::vector<std::int64_t>(program.ranks.size());
  }

  Timeline run() {
    std::vector<int> ready;
    for (int task = 0; task < static_cast<int>(waits_.size()); ++task)
      if (waits_[task] == 0) ready.push_back(task);
    begin(ready, 0);
    while (!ends_.empty()) {
      const std::int64_t now = ends_.top().first;
      ready.clear();
      while (!ends_.empty() && ends_.top().first == now) {
        const int task = ends_.top().second;
        ends_.pop();
        if (goes_on(task, now, ready)) continue;
        note_end(task, now);
        for (int next : graph_.successors[task])
          if (--waits_[next] == 0) ready.push_back(next);
        if (!in_stretches(task)) release(task, ready);
      }
      begin(ready, now);
      line_.step = now;
    }
    line_.finished = started_ == static_cast<std::int64_t>(graph_.members.size());
    return std::move(line_);
  }

 private:
  const Action& head(int task) const { return program_.at(graph_.members[task][0]); }
  std::int64_t duration(int task) const {
    return durations_[graph_.members[task][0].rank][graph_.members[task][0].index];
  }

  /// A pass whose sums meet other traffic runs in stretches: computing, a sum, computing, a sum, ...
  bool in_stretches(int task) const {
    return network_.tensor.shared >= 0 && head(task).sums > 0 && !is_communication(head(task));
  }
  bool on_link(int task) const {
    return in_stretches(task) ? stretch_[task] % 2 == 1 : is_communication(head(task));
  }
  int link_of(int task) const {
    if (!on_link(task)) return -1;
    return in_stretches(task) ? network_.tensor.shared
                              : network_.of(head(task), graph_.members[task][0].rank).shared;
  }
  /// When a task that goes on now ends: the whole of it, or its next stretch.
  std::int64_t next_end(int task, std::int64_t now) const {
    if (!in_stretches(task)) return now + duration(task);
    const std::int64_t sums = std::min(duration(task), network_.tensor_time(head(task))),
                       all = on_link(task) ? sums : duration(task) - sums;
    const std::int64_t turn = stretch_[task] / 2, turns = head(task).sums;
    return now + all * (turn + 1) / turns - all * turn / turns;
  }

  /// Ends a stretch; false when the task itself has ended.
  bool goes_on(int task, std::int64_t now, std::vector<int>& ready) {
    if (!in_stretches(task)) return false;
    if (on_link(task)) {
      line_.sums[graph_.members[task][0].rank] += now - asked_[task];
      release(task, ready);
    } else {
      asked_[task] = now;
    }
    if (++stretch_[task] == 2 * head(task).sums) return false;
    ready.push_back(task);
    return true;
  }

  /// What is there first at one moment: computation, then by class, from, to, place in the list.
  auto rank_among_ready(int task) const {
    const Place place = graph_.members[task][0];
    const Action& action = head(task);
    const int traffic = on_link(task) ? 1 + static_cast<int>(class_of(action)) : 0;
    return std::tuple(traffic, place.rank, action.peer, place.index);
  }

  void begin(std::vector<int>& ready, std::int64_t now) {
    std::sort(ready.begin(), ready.end(),
              [&](int a, int b) { return rank_among_ready(a) < rank_among_ready(b); });
    for (int task : ready) {
      const int link = link_of(task);
      if (link >= 0 && taken_.count(link)) {
        waiting_[link].push_back(task);
        continue;
      }
      if (link >= 0) taken_[link] = task;
      const std::int64_t end = next_end(task, now);
      if (stretch_[task] == 0) {
        for (const Place& member : graph_.members[task]) {
          line_.spans[member.rank][member.index].start = now;
          line_.started[member.rank][member.index] = started_;
        }
        ++started_;
      }
      ends_.push({end, task});
    }
  }

  /// A task has ended as a whole.
  void note_end(int task, std::int64_t now) {
    const Place place = graph_.members[task][0];
    for (const Place& member : graph_.members[task]) line_.spans[member.rank][member.index].end = now;
    if (head(task).queue != Queue::compute || is_communication(head(task))) return;
    line_.busy[place.rank] += now - line_.spans[place.rank][place.index].start;
    if (head(task).sums > 0 && !in_stretches(task))
      line_.sums[place.rank] += std::min(duration(task), network_.tensor_time(head(task)));
  }

  /// Lets the next one onto a shared link: the highest class, of these the one that has waited longest.
  void release(int task, std::vector<int>& ready) {
    const int link = link_of(task);
    if (link < 0) return;
    taken_.erase(link);
    auto& queue = waiting_[link];
    if (queue.empty()) return;
    const auto next = std::min_element(queue.begin(), queue.end(),
                                       [&](int a, int b) { return class_of(head(a)) < class_of(head(b)); });
    ready.push_back(*next);
    queue.erase(next);
  }

  const Program& program_;
  const Durations& durations_;
  const Network& network_;
  TaskGraph graph_;
  std::vector<int> waits_;
  std::vector<int> stretch_;         // of each task in stretches: which is next or under way
  std::vector<std::int64_t> asked_;  // when its newest sum was ready for the link
  Timeline line_;
  std::int64_t started_ = 0;
  std::map<int, int> taken_;
  std::map<int, std::vector<int>> waiting_;
  std::priority_queue<std::pair<std::int64_t, int>, std::vector<std::pair<std::int64_t, int>>, std::greater<>>
      ends_;
};

}  // namespace

Durations durations_of(const Program& program, const Outline& outline, const Network& network) {
  Durations durations;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    auto& times = durations.emplace_back();
    for (const Action& action : program.ranks[rank]) times.push_back(time_of(action, outline, network, rank));
  }
  return durations;
}

Timeline simulate(const Program& program, const Durations& durations, const Network& network) {
  return Simulation(program, durations, network).run();
}

bool frees_tape(const Action& action, const Outline& outline) {
  if (is_forward(action)) return !outline.training;
  return makes_gradients(action) && action.first == outline.first_block[action.chunk];
}

}  // namespace mindpipe
