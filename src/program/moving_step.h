#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// The outline of a step that moves blocks to a neighbouring stage each, so that the next step has the cut
/// `next`. Refuses a cut that one step cannot come to. `most`: blocks that one boundary may move.
Outline moving_step(const Outline& outline, const std::vector<int>& next, int most);

/// The outline of the step behind a moving one.
Outline after_move(const Outline& moving);
/// The ranks that a unit leaves and comes to in a moving step; none of a unit that stays.
std::optional<std::pair<int, int>> way_of(const Outline& moving, int unit);
/// The units whose only home is `from`, and from the next step on `to`, ascending. A moving step hands their
/// states and gradients over.
std::vector<int> units_leaving(const Outline& moving, int from, int to);
/// The units that `rank` updates: those that stay, ascending, then those that come in a moving step.
std::vector<int> units_updated_by(const Outline& outline, int rank);

/// "block 4 from stage 1 to stage 0, blocks 7, 8 from stage 1 to stage 2": what moves in such a step.
std::string moved_blocks(const Outline& moving);

}  // namespace mindpipe
