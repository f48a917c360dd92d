#pragma once
#include <cstdint>

#include "plan/run_plan.h"

namespace mindpipe {

/// Times between which nine of ten steps of a plan should lie when they are measured: nanoseconds.
struct StepRange {
  std::int64_t least = 0, most = 0;
};

/// The range of a planned step, by what its prices are worth: measured on a machine, described on paper, or
/// waited for by emulated ranks.
StepRange range_of(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
