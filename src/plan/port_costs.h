#pragma once
#include <functional>

#include "plan/run_plan.h"
#include "program/clock/pair_costs.h"

namespace mindpipe {

/// How long something takes on a network; `see` is told of each transfer that leaves a port, unless it is
/// empty.
using TimeOnNetwork =
    std::function<std::int64_t(const Network& network, const std::function<void(const Ports::Left&)>& see)>;
/// Prices all pairs: each that waits is simulated once more, as if the one did not find the other at ports.
PortCosts port_costs(const Network& network, const TimeOnNetwork& time);
/// Prices the pairs of a step as it is planned.
PortCosts port_costs_of_step(const PlannedStep& step, const Outline& outline);
/// Prices the pairs of a run's step, or of a supernet's first subnets.
PortCosts port_costs_of(const RunPlan& plan, const Config& config);

}  // namespace mindpipe
