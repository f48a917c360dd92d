#pragma once
#include <string>

#include "trace/causes.h"

namespace mindpipe {

/// Why the rank that a cause names was slow, as the system's counts of it say beside those of other ranks.
/// Where they say nothing, a guess that calls itself one; of causes that name no rank, or without counts,
/// nothing.
std::string likely_reason(const StepTrace& trace, const Cause& cause);

/// How long processors ran other processes in a step of the median rank, in nanoseconds.
double usual_run_delay(const StepTrace& trace);

/// Says that processors ran other processes for a fiftieth of a step of `period` or more on the median rank;
/// empty: they did not.
std::string busy_machine(const StepTrace& trace, std::int64_t period);

}  // namespace mindpipe
