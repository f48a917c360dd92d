#pragma once
#include <vector>

#include "app/verbs/arguments.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// How long steps of these layouts take in this job, in seconds: five each in two turns, there and back, so
/// that a drift of the machine falls on all alike. `beside_last`: once more, where the fastest seems faster
/// than the last, but not surely. Nothing is written. Collective over the job.
std::vector<std::vector<double>> measured_steps(const Arguments& arguments, const Config& config,
                                                const std::vector<LayoutChoice>& layouts, bool beside_last);

/// Whether steps are faster than those of another layout: whether the 95 % interval of the median gain lies
/// above 0, by pairs of steps that have the same number in the same turn. What makes the machine slow for a
/// while makes both slow; a few steps that something else held up, however long, decide nothing.
bool surely_faster(const std::vector<double>& steps, const std::vector<double>& others);

}  // namespace mindpipe
