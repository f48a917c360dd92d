#pragma once
#include "program/action.h"
#include "program/outline.h"
#include "program/schedules/order.h"

namespace mindpipe {

/// Writes an order out as lists of actions: passes, messages, and at the end of the step the sums over data,
/// the scalars, the updates (and gathers), with every `after` that the data demand; no buffers, no tickets.
Program assemble(const Outline& outline, const Order& order);

}  // namespace mindpipe
