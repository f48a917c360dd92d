#pragma once
#include <vector>

#include "plan/run_plan.h"

namespace mindpipe {

/// A step of a run that moves blocks to the stages beside theirs.
struct PlannedMove {
  std::int64_t step = 0;  ///< number of that step, from 1: so many are done once the blocks have moved
  RunPlan during;         ///< plan of that step, with the cut of the step before
  RunPlan after;          ///< plan of the steps behind it
};

/// Plans all moves of a training that begins with the cut of `first`, proves their lists and refuses those
/// that cannot be.
std::vector<PlannedMove> plan_moves(const Config& config, const RunPlan& first);

}  // namespace mindpipe
