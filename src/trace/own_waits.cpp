#include "trace/own_waits.h"

#include <algorithm>

#include "program/clock/ports.h"

namespace mindpipe {
namespace {

/// A message that stands ready, and where it is received.
struct Offered {
  Ports::Transfer transfer;
  std::int64_t time = 0;
  std::size_t step = 0;
  int receive = 0;
};

/// Lets transfers pass ports, each offered at its time. Calls see(left) for each.
template <class See>
void pass_ports(const std::vector<Offered>& in_order, const See& see) {
  Ports ports;
  auto next = in_order.begin();
  while (next != in_order.end() || ports.next() != Ports::never) {
    const std::int64_t now = std::min(next == in_order.end() ? Ports::never : next->time, ports.next());
    while (ports.next() == now) see(ports.leave());
    for (; next != in_order.end() && next->time == now; ++next) ports.offer(next->transfer, now);
    ports.serve(now);
  }
}

}  // namespace

std::vector<std::vector<std::int64_t>> waits_among_messages(const StepTrace& trace, const ReplayGraph& graph,
                                                            const ReplayTimes& measured, TrafficClass of,
                                                            const std::vector<std::int64_t>& usual) {
  std::vector<Offered> offered;
  for (std::size_t step = 0; step < measured.rows.size(); ++step)
    for (int meeting = 0; meeting < graph.meetings(); ++meeting) {
      const std::span<const int> members = graph.members(meeting);
      if (!is_message(graph.at(members.front())) || class_of(graph.at(members.front())) != of) continue;
      const bool first_sends = sends(graph.at(members.front()));
      const int send = members[first_sends ? 0 : 1], receive = members[first_sends ? 1 : 0];
      if (usual[receive] <= 0) continue;
      const int from = graph.rank_of(send), to = graph.rank_of(receive);
      const bool within = trace.hosts.empty() || trace.hosts[from] == trace.hosts[to];
      const std::int64_t end = trace.ranks[to].steps[step][graph.index_of(receive)].end;
      offered.push_back({.transfer = {.traffic = of,
                                      .level = within ? Level::node : Level::net,
                                      .from = from,
                                      .to = to,
                                      .takes = usual[receive]},
                         .time = end - measured.rows[step].lasts[receive],
                         .step = step,
                         .receive = receive});
    }
  std::stable_sort(offered.begin(), offered.end(),
                   [](const Offered& a, const Offered& b) { return a.time < b.time; });
  for (std::size_t i = 0; i < offered.size(); ++i) offered[i].transfer.number = static_cast<int>(i);
  std::vector<std::vector<std::int64_t>> waits(measured.rows.size(),
                                               std::vector<std::int64_t>(graph.actions(), 0));
  pass_ports(offered, [&](const Ports::Left& left) {
    const Offered& message = offered[left.transfer.number];
    waits[message.step][message.receive] = left.arrived - left.offered - left.transfer.takes;
  });
  return waits;
}

}  // namespace mindpipe
