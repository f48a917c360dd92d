#pragma once
#include <functional>

#include "plan/run_plan.h"

namespace mindpipe {

/// Plans the step of a plan that has its outline and network, and chooses what the configuration leaves open
/// within memory.device_limit: groups of micro-batches, and how many tapes a schedule keeps that puts weight
/// gradients off. `count` counts the memory of a plan that has its step: at last of this
/// one. `is_too_long`: as of make_run_plan.
void plan_step_within(RunPlan& plan, const Config& config, const KnownOrder& known,
                      const std::function<void(RunPlan&)>& count, const IsTooLong& is_too_long);

/// With fewer rooms messages meet others in other queues, and a step may be shorter by chance than with all
/// the rooms that it could use: by 1.6 % at most where that was looked at, by less than this leaves.
inline constexpr int percent_in_rooms = 95;
/// Where an order has fewer tapes it may be shorter by chance, though by less than this leaves: percent of
/// what it takes with more of them.
inline constexpr int percent_with_fewer_tapes = 99;

/// Says to a schedule that puts weight gradients off which bytes of tapes each stage may have.
void allow_tapes(Outline& outline, ScheduleKind schedule, const std::vector<std::int64_t>& bytes);

}  // namespace mindpipe
