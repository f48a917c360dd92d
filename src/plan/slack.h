#pragma once
#include <vector>

#include "program/clock/simulate.h"

namespace mindpipe {

/// How much longer the passes and updates of each rank of a program may take, all together, with the step
/// as long as it is: 0.2 is a fifth longer.
struct Slack {
  std::vector<double> of_ranks;
  double lengthens = 0;  ///< share by which the step then grows
};

/// The durations, with the work of each rank's compute queue (1 + slack) times as long.
Durations slowed(const Program& program, Durations durations, const std::vector<double>& slack);

/// Slack by the simulator: of each rank alone by bisection, then of all together, scaled back until the step
/// is at most 0.2 % longer. No clock goes lower than half.
Slack slack_of(const Program& program, const Durations& durations, const Network& network);

}  // namespace mindpipe
