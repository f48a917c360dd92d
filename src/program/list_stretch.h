#pragma once
#include <cstdint>
#include <vector>

#include "program/action.h"

namespace mindpipe {

/// What one rank's list goes on with. `after` counts within the stretch; below 0 it names actions of the
/// stretches before, -1 the last of them.
struct ListStretch {
  std::vector<Action> actions;
  std::vector<std::int64_t> times;  ///< nanoseconds on paper, of each action
};

}  // namespace mindpipe
