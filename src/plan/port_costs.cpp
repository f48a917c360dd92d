#include "plan/port_costs.h"

#include "plan/network_on_paper.h"
#include "program/causal/causal_planner.h"
#include "supernet/sampler.h"

namespace mindpipe {
PortCosts port_costs(const Network& network, const TimeOnNetwork& time) {
  return port_costs([&](const std::optional<Unseen>& unseen, const auto& see) {
    Network on = network;
    on.unseen = unseen;
    return time(on, see);
  });
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
