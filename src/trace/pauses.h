#pragma once
#include "trace/step_trace.h"

namespace mindpipe {

/// Takes out of a trace the time that all ranks spent between two steps beyond what is usual there, in
/// evaluations and saves, and notes how often and how long: such a time is none of the steps'. Clocks are
/// together.
void leave_out_pauses(StepTrace& trace);

}  // namespace mindpipe
