#pragma once
#include "device_description.h"
#include "program/clock/simulate.h"

namespace mindpipe {

struct Config;

/// The links that carry messages in plans: device.links, else the links of the device that plans are priced
/// for.
LinkDescription links_on_paper(const Config& config);

/// The links between the pipeline ranks of a grid and within its groups, and how long parts may be by what
/// carries them. Ranks fill one node after the other in the grid's order, tensor innermost; lists of ranks
/// that differ in the data or tensor coordinate are equal, so the slowest of them counts.
Network network_on_paper(const Config& config);

}  // namespace mindpipe
