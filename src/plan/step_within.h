#pragma once
#include <functional>

#include "plan/run_plan.h"

namespace mindpipe {

/// Plans the step of a plan that has its outline and network, and chooses what the configuration leaves open
/// within memory.device_limit: groups of micro-batches, and how many tapes a schedule keeps that puts weight
/// gradients off. `count` counts the memory of a plan that has its step.
void plan_step_within(RunPlan& plan, const Config& config, const KnownOrder& known,
                      const std::function<void(RunPlan&)>& count);

}  // namespace mindpipe
