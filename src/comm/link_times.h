#pragma once
#include "comm/mpi.h"

namespace mindpipe {

/// What messages between two ranks take: seconds before any arrives, and bytes a second behind that.
struct LinkTimes {
  double latency = 0, rate = 0;
};

/// Times messages between neighbours (0 and 1, 2 and 3, ...), all at once and both ways, medians over rounds.
/// Rank 0's are given back, on every rank those of its own pair. Collective over the world.
LinkTimes time_links(const World& world);

}  // namespace mindpipe
