#pragma once
#include <vector>

#include "app/verbs/arguments.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// How long steps of these layouts take in this job, in seconds: five each in two turns, there and back, so
/// that a drift of the machine falls on all alike. Nothing is written. Collective over the job.
std::vector<std::vector<double>> measured_steps(const Arguments& arguments, const Config& config,
                                                const std::vector<LayoutChoice>& layouts);

/// Whether steps are faster than those of another layout, 95 times of 100, by the differences of the steps
/// that have the same number in the same turn: what makes the machine slow for a while makes both slow.
bool surely_faster(const std::vector<double>& steps, const std::vector<double>& others);

}  // namespace mindpipe
