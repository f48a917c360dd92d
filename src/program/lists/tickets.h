#pragma once
#include "program/action.h"
#include "program/clock/simulate.h"

namespace mindpipe {

/// Numbers all communication by its start in virtual time (ties: dependencies, then class, from, to) and
/// brings every list into that order; each queue keeps its own. `line` is the program's own timeline.
void give_tickets(Program& program, const Timeline& line);

}  // namespace mindpipe
