#pragma once
#include <string>

#include "plan/run_plan.h"

namespace mindpipe {

/// What is proved of the sums of a training, before anything runs, for how many ranks, and how long that
/// took: of a step all, of a supernet's stream the first subnets; the others are proved while it runs. Empty
/// where nothing is trained.
std::string proof_text(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
