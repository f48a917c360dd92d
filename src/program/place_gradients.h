#pragma once
#include <vector>

#include "program/action.h"
#include "program/outline.h"
#include "program/place.h"

namespace mindpipe {

/// Gives the gradients of a rank's units slabs in which their uses take turns, and adds the waits that this
/// demands: a backward that is the first in a slab waits for the sum over data of the use before it. A slab
/// is free again for the passes behind the one that feeds the `under_way`-th sum after its own, so that so
/// many sums may be under way at once. Only uses whose slab another one takes over move this rank's part out.
void place_gradients(std::vector<Action>& list, const Outline& outline, int under_way, RankMemory& memory);

}  // namespace mindpipe
