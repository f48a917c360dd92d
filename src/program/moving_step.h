#pragma once
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// The outline of a step that moves blocks to a neighbouring stage each, so that the next step has the cut
/// `next`. Refuses a cut that one step cannot come to. `room`: blocks that one boundary may move.
Outline moving_step(const Outline& outline, const std::vector<int>& next, int room);

}  // namespace mindpipe
