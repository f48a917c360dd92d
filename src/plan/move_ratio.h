#pragma once
#include "program/simulate.h"

namespace mindpipe {

/// How long the states of a subnet-stage's units are under way, over how long its forwards and backwards
/// take, in the mean over all candidates: r. Where r (s - 1) / s is below 1, s lanes hide their moves.
double move_ratio(const Outline& outline, const Network& network);

}  // namespace mindpipe
