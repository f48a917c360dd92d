#pragma once
#include "program/action.h"
#include "program/order.h"
#include "program/outline.h"

namespace mindpipe {

/// Writes an order out as lists of actions: the passes, their messages, and at the end of the step the sums
/// over data, the scalars, the updates (and gathers). Every `after` that the data demand is set; buffers and
/// tickets are not.
Program assemble(const Outline& outline, const Order& order);

}  // namespace mindpipe
