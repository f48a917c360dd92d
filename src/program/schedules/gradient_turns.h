#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

/// Where the gradient of one use of a unit is added up when uses take turns in shared memory.
struct GradientPlace {
  int slab = -1;
  bool moves_out = false;  ///< this rank's part of the sum, when another use takes the slab
};

/// When the accumulators of a use are in use on one rank, in places of its passes.
struct GradientLife {
  UnitUse use;
  int first = -1;  ///< the first backward that adds to them
  int fed = -1;    ///< the last one
};

/// The slabs in which the gradients of a rank's uses take turns.
struct GradientTurns {
  /// A backward that has to wait until so many of the rank's uses have been summed over data.
  struct Wait {
    int pass = 0, sums = 0;
  };
  std::vector<std::int64_t> slabs;  ///< bytes of each
  std::map<UnitUse, GradientPlace> places;
  std::vector<Wait> waits;
};

/// Gives the gradients of a rank's uses slabs in which they take turns: a backward that is the first in a
/// slab waits for the sum over data of the use before it. `lives`: in the order of these sums. A slab is free
/// again for the passes behind the one that feeds the `under_way`-th sum after its own, so that so many sums
/// may be under way at once. Only uses whose slab another one takes over move this rank's part out.
GradientTurns take_turns(const std::vector<GradientLife>& lives, const Outline& outline, int under_way);

}  // namespace mindpipe
