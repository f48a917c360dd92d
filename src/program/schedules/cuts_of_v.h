#pragma once
#include <vector>

#include "config/kinds.h"
#include "program/clock/prices.h"

namespace mindpipe {

/// Cuts of a V for a schedule, in the form of balanced_cuts: from those of an outline on, neighbouring chunks
/// give each other blocks while the step gets shorter by the inner clock, or the tapes come nearer to what
/// the schedule may keep. It counts its tries, so all ranks and machines find the same.
std::vector<int> cuts_of_v(const Outline& outline, ScheduleKind schedule, const Network& network);

}  // namespace mindpipe
