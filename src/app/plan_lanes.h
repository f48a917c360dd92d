#pragma once
#include <string>

#include "plan/run_plan.h"

namespace mindpipe {

/// How fast a supernet would be on all lanes x stages of as many ranks, with one cut and with cuts of
/// subnets' own, on paper: which is the fastest, and why. Empty where there is nothing to choose.
std::string lanes_text(const Config& config, int ranks);

/// Whether several lanes are faster on paper than one of them, and passes long enough for moves to go on
/// beside them.
bool lanes_pay(const Config& config, const RunPlan& plan);

/// How long moves take beside passes, and where that is too long, the batch that would hide them and what is
/// lost on paper. Empty where nothing moves.
std::string moves_text(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
