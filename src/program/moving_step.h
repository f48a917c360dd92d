#pragma once
#include <string>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// The outline of a step that moves blocks to a neighbouring stage each, so that the next step has the cut
/// `next`. Refuses a cut that one step cannot come to. `most`: blocks that one boundary may move.
Outline moving_step(const Outline& outline, const std::vector<int>& next, int most);

/// "block 4 from stage 1 to stage 0, blocks 7, 8 from stage 1 to stage 2": what moves in such a step.
std::string moved_blocks(const Outline& moving);

}  // namespace mindpipe
