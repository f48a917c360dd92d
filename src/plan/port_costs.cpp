#include "plan/port_costs.h"

#include <algorithm>

#include "plan/network_on_paper.h"
#include "program/causal/causal_planner.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

constexpr std::int64_t dear_share = 200;  // half a percent

}  // namespace

std::vector<PairCost> PortCosts::dear() const {
  std::vector<PairCost> dear;
  for (const PairCost& pair : pairs)
    if (pair.cost > 0 && pair.cost * dear_share >= time) dear.push_back(pair);
  return dear;
}

PortCosts port_costs(const Network& network, const TimeOnNetwork& time) {
  std::vector<Ports::Left> transfers;
  PortCosts costs;
  costs.time = time(network, [&](const Ports::Left& left) { transfers.push_back(left); });
  TimesByPair waited = waits_at_ports(transfers);
  for (const TrafficClass waits : traffic_classes)
    for (const TrafficClass holds : traffic_classes) {
      PairCost pair{waits, holds, at(waited, waits, holds)};
      if (waits == holds || pair.waited == 0) continue;
      Network blind = network;
      blind.unseen = Unseen{.by = waits, .what = holds};
      pair.cost = costs.time - time(blind, nullptr);
      costs.pairs.push_back(pair);
    }
  std::stable_sort(costs.pairs.begin(), costs.pairs.end(),
                   [](const PairCost& a, const PairCost& b) { return a.cost > b.cost; });
  return costs;
}

PortCosts port_costs_of_step(const PlannedStep& step, const Outline& outline) {
  const Durations durations = durations_of(step.program, outline, step.network);
  return port_costs(step.network, [&](const Network& network, const auto& see) {
    return simulate(step.program, durations, network, see).step;
  });
}

PortCosts port_costs_of(const RunPlan& plan, const Config& config) {
  if (!plan.subnets) return port_costs_of_step(plan.training, plan.outline);
  const auto subnets = first_subnets(config);
  PortCosts costs = port_costs(network_on_paper(config), [&](const Network& network, const auto& see) {
    return simulate_rooms(plan.outline, network, plan.subnets->paper.rules, subnets, see).time;
  });
  costs.count = static_cast<std::int64_t>(subnets.size());
  return costs;
}

}  // namespace mindpipe
