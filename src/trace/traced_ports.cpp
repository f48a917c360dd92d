#include "trace/traced_ports.h"

#include <algorithm>

namespace mindpipe {

TracedPorts::TracedPorts(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured)
    : graph_(graph), measured_(measured), fit_(trace, graph, measured) {
  if (fit_.found().empty()) return;
  find_transfers(trace);
  find_waits();
}

void TracedPorts::find_transfers(const StepTrace& trace) {
  const auto add = [&](std::size_t step, int meeting, int member, int from) {
    const ReplayRow& row = measured_.rows[step];
    const std::int64_t lasts = row.lasts[member], usual = fit_.usual(member);
    if (row.eager[member] || lasts <= 0) return;
    const int to = graph_.rank_of(member);
    const bool within = trace.hosts.empty() || trace.hosts[from] == trace.hosts[to];
    const std::int64_t end = trace.ranks[to].steps[step][graph_.index_of(member)].end;
    meeting_of_.emplace_back(step, meeting);
    transfers_.push_back({.transfer = {.traffic = class_of(graph_.at(member)),
                                       .level = within ? Level::node : Level::net,
                                       .from = from,
                                       .to = to,
                                       .takes = usual > 0 ? std::min(usual, lasts) : lasts,
                                       .number = static_cast<int>(transfers_.size())},
                          .offered = end - lasts,
                          .left = end,
                          .arrived = end});
  };
  for (std::size_t step = 0; step < measured_.rows.size(); ++step)
    for (int meeting = 0; meeting < graph_.meetings(); ++meeting) {
      const std::span<const int> members = graph_.members(meeting);
      const Action& what = graph_.at(members.front());
      if (what.bytes == 0 || what.group == Members::grid) continue;
      const bool first_sends = sends(what);
      if (is_message(what))
        add(step, meeting, members[first_sends ? 1 : 0], graph_.rank_of(members[first_sends ? 0 : 1]));
      else
        for (const int member : members) add(step, meeting, member, graph_.rank_of(member));
    }
}

/// What no other explains that held the out port was lost at the in port.
void TracedPorts::find_waits() {
  std::vector<std::int64_t> at_out(transfers_.size(), 0);
  each_wait_at_ports(transfers_, [&](const Ports::Left& waits, const Ports::Left&, std::int64_t time) {
    at_out[waits.transfer.number] += time;
  });
  for (std::size_t i = 0; i < transfers_.size(); ++i)
    transfers_[i].left =
        std::min(transfers_[i].arrived, transfers_[i].offered + transfers_[i].transfer.takes + at_out[i]);
  std::map<std::pair<TrafficClass, TrafficClass>, std::vector<std::int64_t>> of_pairs;
  each_wait_at_ports(transfers_, [&](const Ports::Left& waits, const Ports::Left& holds, std::int64_t time) {
    std::vector<std::int64_t>& all = of_pairs[{waits.transfer.traffic, holds.transfer.traffic}];
    all.resize(transfers_.size());
    all[waits.transfer.number] += time;
  });
  for (const auto& [pair, times] : of_pairs)
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] > 0) {
        std::int64_t& longest = waits_[pair][meeting_of_[i]];
        longest = std::max(longest, times[i]);
      }
}

void TracedPorts::remove(const Unseen& pair, ReplayTimes& times) const {
  const auto found = waits_.find({pair.by, pair.what});
  if (found == waits_.end()) return;
  for (const auto& [place, waited] : found->second)
    for (const int member : graph_.members(place.second)) {
      std::int64_t& lasts = times.rows[place.first].lasts[member];
      if (!times.rows[place.first].eager[member]) lasts = std::max<std::int64_t>(0, lasts - waited);
    }
}

PortCosts TracedPorts::costs(Counted counted) const {
  if (found().empty()) return {};
  const auto is_sure = [&](TrafficClass waits, TrafficClass holds) {
    return std::any_of(found().begin(), found().end(),
                       [&](const Contention& pair) { return pair.waits == waits && pair.holds == holds; });
  };
  PortCosts costs = port_costs([&](const std::optional<Unseen>& unseen, const auto& see) {
    if (see)
      for (const Ports::Left& left : transfers_) see(left);
    ReplayTimes times = measured_;
    if (unseen) remove(*unseen, times);
    return replayed_period(graph_, times, static_cast<int>(times.rows.size()), counted);
  });
  std::erase_if(costs.pairs, [&](const PairCost& pair) { return !is_sure(pair.waits, pair.holds); });
  return costs;
}

}  // namespace mindpipe
