#pragma once
#include <string>
#include <vector>

#include "program/action.h"
#include "program/tape_slab.h"

namespace mindpipe {

/// Where two tapes in a slab share bytes at a time while a list runs, in words; nowhere: empty.
std::string fault_of_slab(const std::vector<Action>& list, const TapeSlab& slab);
/// Throws the fault of a rank's slab, a mistake of ours.
void require_sound_slab(const std::vector<Action>& list, const TapeSlab& slab, int rank);

}  // namespace mindpipe
