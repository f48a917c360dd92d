#include "trace/replay_at_ports.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "program/clock/port_events.h"

namespace mindpipe {
namespace {

/// Runs steps by events, the earliest first.
class AtPorts {
 public:
  AtPorts(const PortTransfers& transfers, const ReplayTimes& measured, const std::vector<Unseen>& unseen)
      : at_ports_(transfers),
        graph_(transfers.graph()),
        times_(measured),
        ran_(transfers.waits(measured)),
        events_(unseen.size() == 1 ? std::optional(unseen.front()) : std::nullopt),
        step_of_(graph_.ranks(), -1),
        left_(graph_.ranks(), 0),
        at_sum_(graph_.actions(), 0),
        waits_(graph_.actions(), 0),
        sharers_(times_.sums_of.back(), 0),
        come_(times_.rows.size(), std::vector<int>(graph_.meetings(), 0)) {
    steps_.starts.assign(times_.rows.size(), std::vector<std::int64_t>(graph_.actions(), -1));
    steps_.ends = steps_.starts;
    for (int action = 0; action < graph_.actions(); ++action) {
      transfers_.push_back(transfers.of(action));
      if (unseen.size() > 1 && transfers_.back()) move_apart(*transfers_.back(), unseen);
    }
    for (const std::vector<ListWait>& list : graph_.order().waits) {
      followers_.emplace_back(list.size());
      for (int index = 0; index < static_cast<int>(list.size()); ++index) {
        for (const int before : list[index].ended) followers_.back()[before].ended.push_back(index);
        if (list[index].begun >= 0) followers_.back()[list[index].begun].begun.push_back(index);
      }
    }
    find_how_long_they_wait();
    list_of_.resize(graph_.ranks());
    for (int list = 0; list < static_cast<int>(followers_.size()); ++list)
      for (const int rank : graph_.order().ranks[list]) list_of_[rank] = list;
  }

  ReplayedAtPorts run() {
    for (int rank = 0; rank < graph_.ranks(); ++rank) begin_step(rank, 0);
    events_.run([&](const Ports::Left& left, std::int64_t) { leave(left); },
                [&](const Event& event, std::int64_t now) { happen(event, now); });
    const auto has_ended = [&](int step) { return step == static_cast<int>(times_.rows.size()); };
    steps_.finished = std::all_of(step_of_.begin(), step_of_.end(), has_ended);
    return {std::move(steps_), std::move(times_)};
  }

 private:
  enum class Phase : std::uint8_t { begins, at_sum, behind_sum, ends };
  struct Event {
    Phase phase = Phase::begins;
    int action = 0;
  };
  /// Entries of a list that wait for another one.
  struct Followers {
    std::vector<int> ended, begun;
  };
  /// A transfer on its way.
  struct OnWay {
    std::size_t step = 0;
    int action = 0;
    std::int64_t offered = 0;
    TurnsLeft at_port = {};
  };

  std::size_t step_of(int action) const { return static_cast<std::size_t>(step_of_[graph_.rank_of(action)]); }
  ReplayRow& row_of(int action) { return times_.rows[step_of(action)]; }
  void at(std::int64_t time, Phase phase, int action) { events_.put(time, {phase, action}); }
  const Followers& followers(int action) const {
    return followers_[list_of_[graph_.rank_of(action)]][graph_.index_of(action)];
  }

  /// How many times as long transfers of each class wait as the rule says, in the mean: those that share a
  /// port's rate wait otherwise, and some for nobody.
  void find_how_long_they_wait() {
    constexpr double most = 2;
    std::array<double, traffic_classes.size()> took{}, waited{};
    for (int action = 0; action < graph_.actions(); ++action) {
      if (!transfers_[action]) continue;
      const auto of = static_cast<std::size_t>(transfers_[action]->traffic);
      for (std::size_t step = 0; step < times_.rows.size(); ++step) {
        if (times_.rows[step].eager[action]) continue;
        took[of] += static_cast<double>(times_.rows[step].lasts[action] - at_ports_.usual(action));
        waited[of] += static_cast<double>(ran_.all[step][action]);
      }
    }
    for (std::size_t of = 0; of < waited.size(); ++of)
      waits_so_long_[of] = waited[of] > 0 ? std::clamp(took[of] / waited[of], 0.0, most) : 1;
  }

  /// Several classes that do not find others have ports of their own.
  void move_apart(Ports::Transfer& transfer, const std::vector<Unseen>& unseen) const {
    if (std::none_of(unseen.begin(), unseen.end(),
                     [&](const Unseen& pair) { return pair.by == transfer.traffic; }))
      return;
    const int by = graph_.ranks() * (1 + static_cast<int>(transfer.traffic));
    transfer.from += by;
    transfer.to += by;
  }

  void begin_step(int rank, std::int64_t now) {
    if (++step_of_[rank] == static_cast<int>(times_.rows.size())) return;
    left_[rank] = graph_.first_of(rank + 1) - graph_.first_of(rank);
    for (int action = graph_.first_of(rank); action < graph_.first_of(rank + 1); ++action) {
      const ListWait& wait = graph_.wait_of(action);
      waits_[action] = static_cast<int>(wait.ended.size()) + (wait.begun >= 0 ? 1 : 0);
      if (wait.is_for_nothing()) at(now + row_of(action).lag[action], Phase::begins, action);
    }
  }

  void happen(const Event& event, std::int64_t now) {
    switch (event.phase) {
      case Phase::begins:
        return begin(event.action, now);
      case Phase::at_sum:
        return meet_sharers(event.action, now);
      case Phase::behind_sum:
        ++at_sum_[event.action];
        return compute(event.action, now);
      case Phase::ends:
        return end(event.action, now);
    }
  }

  void release(int action, const std::vector<int>& entries, std::int64_t now) {
    const int first = action - graph_.index_of(action);
    for (const int entry : entries)
      if (--waits_[first + entry] == 0)
        at(now + row_of(first + entry).lag[first + entry], Phase::begins, first + entry);
  }

  void begin(int action, std::int64_t now) {
    const int meeting = graph_.meeting_of(action);
    steps_.starts[step_of(action)][action] = now;
    at_sum_[action] = 0;
    release(action, followers(action).begun, now);
    if (meeting < 0) return compute(action, now);
    if (row_of(action).eager[action]) at(now + row_of(action).lasts[action], Phase::ends, action);
    const std::span<const int> members = graph_.members(meeting);
    if (++come_[step_of(action)][meeting] == static_cast<int>(members.size())) meet(members, now);
  }

  /// All have come: what goes through ports is offered, the rest lasts as long as said.
  void meet(std::span<const int> members, std::int64_t now) {
    for (const int member : members) {
      if (row_of(member).eager[member]) continue;
      if (transfers_[member]) offer(member, now);
      else if (!ends_with_receive(members, member))
        at(now + row_of(member).lasts[member], Phase::ends, member);
    }
  }
  /// A send goes with what its receive waits for.
  bool ends_with_receive(std::span<const int> members, int member) const {
    return sends(graph_.at(member)) && std::any_of(members.begin(), members.end(), [&](int other) {
             return transfers_[other] && !times_.rows[step_of(other)].eager[other];
           });
  }
  void offer(int action, std::int64_t now) {
    Ports::Transfer transfer = *transfers_[action];
    transfer.number = static_cast<int>(on_way_.size());
    on_way_.push_back({step_of(action), action, now});
    const int turns = at_ports_.turns(action, transfer);
    transfer.takes = ran_.takes[step_of(action)][action];
    events_.offer(transfer, now, turns);
  }
  void leave(Ports::Left left) {
    OnWay& way = on_way_[left.transfer.number];
    way.at_port.add(left);
    if (left.transfer.goes_on) return;
    const auto& [step, action, offered, at_port] = way;
    const std::int64_t waits =
        std::max<std::int64_t>(0, at_port.arrived - offered - transfers_[action]->takes);
    for (const int member : graph_.members(graph_.meeting_of(action))) {
      if (member != action && !sends(graph_.at(member))) continue;
      ReplayRow& row = times_.rows[step];
      if (row.eager[member]) continue;
      row.lasts[member] += std::llround(waits_so_long_[static_cast<std::size_t>(left.transfer.traffic)] *
                                        static_cast<double>(waits - ran_.all[step][action]));
      row.lasts[member] = std::max(row.lasts[member], left.left - offered);
      at(offered + row.lasts[member], Phase::ends, member);
    }
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
    steps_.ends[step_of(action)][action] = now;
    release(action, followers(action).ended, now);
    if (--left_[rank] == 0) begin_step(rank, now);
  }

  const PortTransfers& at_ports_;
  const ReplayGraph& graph_;
  ReplayTimes times_;
  Replayed steps_;
  PortWaits ran_;  ///< by the same rule, where it ran
  std::array<double, traffic_classes.size()> waits_so_long_{};
  PortEvents<Event> events_;
  std::vector<std::optional<Ports::Transfer>> transfers_;  ///< by action
  std::vector<std::vector<Followers>> followers_;          ///< [list][index]
  std::vector<int> list_of_, step_of_, left_;              ///< by rank
  std::vector<int> at_sum_, waits_;                        ///< by action
  std::vector<int> sharers_;                               ///< by sum of the first sharer: how many have come
  std::vector<std::vector<int>> come_;                     ///< [step][meeting]
  std::vector<OnWay> on_way_;                              ///< by number at ports
};

}  // namespace

ReplayedAtPorts replay_at_ports(const PortTransfers& transfers, const ReplayTimes& measured,
                                const std::vector<Unseen>& unseen) {
  return AtPorts(transfers, measured, unseen).run();
}

}  // namespace mindpipe
