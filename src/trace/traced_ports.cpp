#include "trace/traced_ports.h"

#include <algorithm>
#include <utility>

#include "trace/replay_at_ports.h"

namespace mindpipe {

TracedPorts::TracedPorts(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured)
    : trace_(trace), graph_(graph), measured_(measured), fit_(trace, graph, measured) {
  if (fit_.found().empty()) return;
  find_transfers();
  part_waits();
}

void TracedPorts::find_transfers() {
  const std::vector<std::string> nodes = trace_.nodes();
  const auto add = [&](std::size_t step, int member, int from) {
    const ReplayRow& row = measured_.rows[step];
    const std::int64_t lasts = row.lasts[member], usual = fit_.usual(member);
    if (row.eager[member] || lasts <= 0) return;
    const int to = graph_.rank_of(member);
    const bool spans = spans_nodes(graph_, nodes, member);
    const std::int64_t end = end_of(step, member);
    transfers_.push_back({.transfer = {.traffic = class_of(graph_.at(member)),
                                       .level = spans ? Level::net : Level::node,
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
        add(step, members[first_sends ? 1 : 0], graph_.rank_of(members[first_sends ? 0 : 1]));
      else
        for (const int member : members) add(step, member, graph_.rank_of(member));
    }
}

/// What no other explains that held the out port was lost at the in port.
void TracedPorts::part_waits() {
  std::vector<std::int64_t> at_out(transfers_.size(), 0);
  each_wait_at_ports(transfers_, [&](const Ports::Left& waits, const Ports::Left&, std::int64_t time) {
    at_out[waits.transfer.number] += time;
  });
  for (std::size_t i = 0; i < transfers_.size(); ++i)
    transfers_[i].left =
        std::min(transfers_[i].arrived, transfers_[i].offered + transfers_[i].transfer.takes + at_out[i]);
}

std::int64_t TracedPorts::longest_wait(std::size_t step, int meeting, const Unseen& pair) const {
  std::int64_t longest = 0;
  for (const int member : graph_.members(meeting))
    if (!sends(graph_.at(member)) && !measured_.rows[step].eager[member])
      longest = std::max(longest, fit_.lost(step, member, pair.what));
  return longest;
}

/// Times at which transfers of a class had passed a port, and what each had waited there for another class.
class TracedPorts::Passed {
 public:
  void add(std::int64_t time, std::int64_t waited) { all_.emplace_back(time, waited); }
  /// Nothing is added any more.
  void sort() {
    std::sort(all_.begin(), all_.end());
    before_.assign(1, 0);
    for (const auto& [time, waited] : all_) before_.push_back(before_.back() + waited);
  }
  /// What those had waited that had passed behind one time and by another.
  std::int64_t waited(std::int64_t behind, std::int64_t by) const { return until(by) - until(behind); }

 private:
  std::int64_t until(std::int64_t time) const {
    const auto next = std::upper_bound(all_.begin(), all_.end(), time,
                                       [](std::int64_t at, const auto& one) { return at < one.first; });
    return before_[static_cast<std::size_t>(next - all_.begin())];
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> all_;
  std::vector<std::int64_t> before_;
};

std::int64_t TracedPorts::usual_of(int meeting) const {
  std::int64_t usual = 0;
  for (const int member : graph_.members(meeting)) usual = std::max(usual, fit_.usual(member));
  return usual;
}

void TracedPorts::shorten(std::size_t step, int meeting, std::int64_t by, ReplayTimes& times) const {
  if (by <= 0) return;
  const std::int64_t usual = usual_of(meeting);
  for (const int member : graph_.members(meeting)) {
    std::int64_t& lasts = times.rows[step].lasts[member];
    if (!times.rows[step].eager[member]) lasts = std::max(std::min(lasts, usual), lasts - by);
  }
}

/// Where transfers do not wait as the rule of ports says: a message that waits for no sum leaves so much
/// earlier, and the sums behind it at its ports do, too. A sum passes an out and an in port: it gains what it
/// would at the out port, or the mean of both.
void TracedPorts::remove(const Unseen& pair, ReplayTimes& times) const {
  std::vector<Passed> out_ports(graph_.ranks()), in_ports(graph_.ranks());
  const auto each = [&](TrafficClass traffic, const auto& see) {
    for (int meeting = 0; meeting < graph_.meetings(); ++meeting)
      if (class_of(graph_.at(graph_.members(meeting).front())) == traffic)
        for (std::size_t step = 0; step < times.rows.size(); ++step) see(step, meeting);
  };
  each(pair.by, [&](std::size_t step, int meeting) {
    const std::int64_t waited = longest_wait(step, meeting, pair);
    shorten(step, meeting, waited, times);
    for (const int member : graph_.members(meeting)) {
      if (!is_message(graph_.at(member)) || measured_.rows[step].eager[member]) continue;
      const std::int64_t late = measured_.rows[step].lasts[member] - usual_of(meeting);
      (sends(graph_.at(member)) ? out_ports : in_ports)[graph_.rank_of(member)].add(
          end_of(step, member), std::clamp<std::int64_t>(late, 0, waited));
    }
  });
  for (std::vector<Passed>* ports : {&out_ports, &in_ports})
    for (Passed& port : *ports) port.sort();
  each(pair.what, [&](std::size_t step, int meeting) {
    std::int64_t longest = 0;
    for (const int member : graph_.members(meeting)) {
      const int rank = graph_.rank_of(member);
      const std::int64_t end = end_of(step, member), begin = end - measured_.rows[step].lasts[member],
                         out = out_ports[rank].waited(begin, end), in = in_ports[rank].waited(begin, end);
      longest = std::max({longest, out, (out + in) / 2});
    }
    shorten(step, meeting, longest, times);
  });
}

ReplayTimes TracedPorts::without(const std::vector<Unseen>& pairs) const {
  if (fit_.goes_by_rule()) return replay_at_ports(fit_.transfers(), measured_, pairs).times;
  ReplayTimes times = measured_;
  for (const Unseen& pair : pairs) remove(pair, times);
  return times;
}

ReplayTimes TracedPorts::without_waits() const {
  std::vector<Unseen> pairs;
  for (const Contention& pair : found()) pairs.push_back({pair.waits, pair.holds});
  return pairs.empty() ? measured_ : without(pairs);
}

ReplayTimes TracedPorts::of_links() const {
  ReplayTimes times = measured_;
  for (int meeting = 0; meeting < graph_.meetings(); ++meeting) {
    const Action& what = graph_.at(graph_.members(meeting).front());
    for (std::size_t step = 0; step < times.rows.size() && is_communication(what); ++step) {
      std::int64_t waited = 0;
      for (const int member : graph_.members(meeting))
        waited = std::max(waited, fit_.waited_by_rule(step, member));
      for (const Contention& pair : found())
        if (pair.waits == class_of(what) && !fit_.goes_by_rule())
          waited += longest_wait(step, meeting, {pair.waits, pair.holds});
      shorten(step, meeting, waited, times);
    }
  }
  return times;
}

PortCosts TracedPorts::costs(Counted counted) const {
  if (found().empty()) return {};
  const auto is_sure = [&](const PairCost& pair) {
    return std::any_of(found().begin(), found().end(), [&](const Contention& sure) {
      return pair.waits == sure.waits && pair.holds == sure.holds;
    });
  };
  const int steps = static_cast<int>(measured_.rows.size());
  PortCosts costs = port_costs([&](const std::optional<Unseen>& unseen, const auto& see) {
    if (see)
      for (const Ports::Left& left : transfers_) see(left);
    const bool changes = unseen && is_sure({unseen->by, unseen->what});
    return replayed_period(graph_, changes ? without({*unseen}) : measured_, steps, counted);
  });
  std::erase_if(costs.pairs, [&](const PairCost& pair) { return !is_sure(pair); });
  return costs;
}

}  // namespace mindpipe
