#pragma once
#include "program/action.h"
#include "program/place.h"
#include "program/schedules/step_order.h"

namespace mindpipe {

/// A step, written down, and the memory that its lists need.
struct WrittenStep {
  Program program;
  Placement placement;
};

/// Runs a step in these rooms and writes the lists of all ranks. Throws where it stands still.
WrittenStep write_step(const Outline& outline, StepOrder& step, const StepRooms& rooms);

}  // namespace mindpipe
