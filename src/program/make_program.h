#pragma once
#include <string>
#include <vector>

#include "config/kinds.h"
#include "program/action.h"
#include "program/outline.h"
#include "program/place.h"
#include "program/simulate.h"

namespace mindpipe {

/// A step ready to run: the lists, the memory they need, and how long the simulator expects them to take.
struct PlannedStep {
  Program program;
  Placement placement;
  Timeline expected;
  Network network;  ///< that it was planned for
};

/// Writes the step of a schedule, places it, numbers its
/// communication and checks it. When the outline is not training, only the schedule's forwards are kept.
/// `memory_limit`: bytes of a rank, 0 for none.
PlannedStep make_program(const Outline& outline, ScheduleKind schedule, const Network& network = {},
                         std::int64_t memory_limit = 0);

/// What is planned, for people: one line for the step and one for each rank, with its blocks, tapes, bubble
/// and memory.
std::string summary_of(const PlannedStep& step, const Outline& outline);
/// The lists themselves, one action a line.
std::string listing_of(const Program& program);

/// Which rank each chunk lives on.
std::vector<int> ranks_of_chunks(const Outline& outline);

}  // namespace mindpipe
