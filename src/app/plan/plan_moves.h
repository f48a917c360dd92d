#pragma once
#include <string>

#include "plan/run_plan.h"

namespace mindpipe {

/// The steps in which blocks change their stage: what moves, how long these steps and those behind them take
/// on paper, what a rank has room for. Empty: none does.
std::string moving_steps_text(const Config& config, const RunPlan& first);

}  // namespace mindpipe
