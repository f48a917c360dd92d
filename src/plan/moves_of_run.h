#pragma once
#include <vector>

#include "plan/run_plan.h"

namespace mindpipe {

struct CutAt;

/// A step of a run that moves blocks to the stages beside theirs.
struct PlannedMove {
  std::int64_t step = 0;  ///< number of that step, from 1: so many are done once the blocks have moved
  RunPlan during;         ///< plan of that step, with the cut of the step before
  RunPlan after;          ///< plan of the steps behind it
};

/// Plans these moves of a training that has come to the cut of `present`, proves their lists and refuses
/// those that cannot be, but for their memory.
std::vector<PlannedMove> plan_moves(const Config& config, const RunPlan& present,
                                    const std::vector<CutAt>& at);

/// Plans the moves that the configuration names, up to its last step. Refuses a training whose blocks cannot
/// move, or that has no memory for it; one whose stages are balanced needs room for a block that comes. Where
/// there is no memory for a copy of the state beside, all plans do without.
std::vector<PlannedMove> plan_moves(const Config& config, RunPlan& first);

/// A plan in which each rank has room for the largest blocks that may come from the stages beside its own.
RunPlan with_room_to_move(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
