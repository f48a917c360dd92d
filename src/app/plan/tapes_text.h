#pragma once
#include <string>

#include "plan/layout_search.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// What becomes of the tapes of each stage's blocks in a plan that was searched, and what keeping, computing
/// again and swapping all of them would take; nothing where a search was not free to choose.
std::string tapes_text(const Config& config, const RunPlan& plan, const LayoutChoice& layout,
                       const SearchFreedom& free);

/// Which stage a step waits for, and how much of memory.device_limit the fullest rank needs.
std::string binding_text(const Config& config, const RunPlan& plan);

}  // namespace mindpipe
