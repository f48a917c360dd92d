#include "trace/port_transfers.h"

#include <algorithm>
#include <cmath>

#include "program/clock/port_events.h"
#include "program/clock/port_waits.h"

namespace mindpipe {
namespace {

/// A transfer that stands ready.
struct Offered {
  Ports::Transfer transfer;
  int turns = 1;
  std::int64_t time = 0;
  std::size_t step = 0;
  int action = 0;
};

}  // namespace

std::optional<Ports::Transfer> PortTransfers::of(int action) const {
  const Action& what = graph_.at(action);
  const int meeting = graph_.meeting_of(action);
  if (meeting < 0 || sends(what) || what.group == Members::grid || what.bytes == 0 || usual_[action] <= 0)
    return {};
  const int to = graph_.rank_of(action);
  int from = to;
  for (const int member : graph_.members(meeting))
    if (sends(graph_.at(member))) from = graph_.rank_of(member);
  return Ports::Transfer{
      .traffic = class_of(what),
      .level = spans_nodes(graph_, nodes_, action) ? Level::net : Level::node,
      .from = from,
      .to = to,
      .takes = usual_[action] - std::llround(latency_ * static_cast<double>(usual_[action]))};
}

int PortTransfers::turns(int action, const Ports::Transfer& transfer) const {
  const Action& what = graph_.at(action);
  return Load{.calls = trace_.calls.of(kind_of(what), what.bytes)}.turns(transfer.takes);
}

PortWaits PortTransfers::waits(const ReplayTimes& measured, std::optional<TrafficClass> one) const {
  std::vector<Offered> offered;
  for (int action = 0; action < graph_.actions(); ++action) {
    const std::optional<Ports::Transfer> transfer = of(action);
    if (!transfer || (one && transfer->traffic != *one)) continue;
    const RankTimes& rank = trace_.ranks[graph_.rank_of(action)];
    for (std::size_t step = 0; step < measured.rows.size(); ++step) {
      if (measured.rows[step].eager[action]) continue;
      const std::int64_t end = rank.steps[step][graph_.index_of(action)].end;
      offered.push_back(
          {*transfer, turns(action, *transfer), end - measured.rows[step].lasts[action], step, action});
      offered.back().transfer.known_to_leave = end - usual_[action] + transfer->takes;
    }
  }
  std::stable_sort(offered.begin(), offered.end(),
                   [](const Offered& a, const Offered& b) { return a.time < b.time; });
  const int count = static_cast<int>(offered.size());
  for (int number = 0; number < count; ++number) offered[number].transfer.number = number;
  PortEvents<int> events;  // the next to be offered
  if (count > 0) events.put(offered.front().time, 0);
  const std::vector<std::int64_t> none(graph_.actions(), 0);
  const PortWaits::Times of_none(measured.rows.size(), none);
  PortWaits waits{.all = of_none, .for_own = of_none, .takes = of_none, .by_pair = {}};
  const auto at = [&](PortWaits::Times & times, const Ports::Left& left) -> auto& {
    const Offered& of = offered[left.transfer.number];
    return times[of.step][of.action];
  };
  std::vector<Ports::Left> passed;
  std::vector<TurnsLeft> turns_left(offered.size());
  events.run(
      [&](Ports::Left left, std::int64_t) {
        TurnsLeft& turns = turns_left[left.transfer.number];
        turns.add(left);
        const Offered& whole = offered[left.transfer.number];
        at(waits.all, left) = std::max<std::int64_t>(0, turns.arrived - whole.time - whole.transfer.takes);
        at(waits.takes, left) += left.transfer.takes;
        passed.push_back(left);
      },
      [&](int number, std::int64_t now) {
        events.offer(offered[number].transfer, now, offered[number].turns);
        if (number + 1 < count) events.put(offered[number + 1].time, number + 1);
      });
  PortWaits::Times for_any = of_none;
  each_wait_at_ports(passed, [&](const Ports::Left& waits_on, const Ports::Left& holds, std::int64_t time) {
    at(for_any, waits_on) += time;
    mindpipe::at(waits.by_pair, waits_on.transfer.traffic, holds.transfer.traffic) += time;
    if (waits_on.transfer.traffic == holds.transfer.traffic) at(waits.for_own, waits_on) += time;
  });
  // Several turns of one transfer may have waited for the same.
  for (const Offered& one : offered) {
    std::int64_t& own = waits.for_own[one.step][one.action];
    const std::int64_t all = waits.all[one.step][one.action], any = for_any[one.step][one.action];
    if (any > all)
      own = std::llround(static_cast<double>(own) * static_cast<double>(all) / static_cast<double>(any));
  }
  return waits;
}

}  // namespace mindpipe
