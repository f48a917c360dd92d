#pragma once
#include <vector>

#include "program/action.h"
#include "program/outline.h"

namespace mindpipe {

/// A way from one rank of a program to another.
struct StretchChannel {
  int from = 0, to = 0;
  Payload payload = Payload::none;
  auto operator<=>(const StretchChannel&) const = default;
};

/// The ranks with which `rank` may exchange states of units: they may run candidates of the same block.
std::vector<int> ranks_of_moves(const Outline& outline, int rank);
/// All ways that stretches of an outline may name, ascending.
std::vector<StretchChannel> channels_of_stretches(const Outline& outline);

/// All ways between stages that steps may name while blocks move from stage to stage.
std::vector<StretchChannel> channels_of_moving_steps(const Outline& outline);

}  // namespace mindpipe
