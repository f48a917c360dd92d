#pragma once
#include <functional>
#include <vector>

#include "plan/run_plan.h"
#include "program/clock/port_waits.h"

namespace mindpipe {

/// What it costs a plan that transfers of one class wait at ports for those of another.
struct PairCost {
  TrafficClass waits = TrafficClass::pipeline, holds = TrafficClass::gradients;
  std::int64_t waited = 0;  ///< nanoseconds of all transfers
  std::int64_t cost =
      0;  ///< nanoseconds that a step takes less where only the first does not find the second
};
/// All pairs of a plan that meet at ports, the dearest first.
struct PortCosts {
  std::int64_t time = 0;   ///< nanoseconds of a step, or of subnets on paper
  std::int64_t count = 1;  ///< steps or subnets that take this time
  std::vector<PairCost> pairs;
  /// Pairs that cost half a percent of the time or more.
  std::vector<PairCost> dear() const;
};

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
