#pragma once
#include <vector>

#include "trace/port_transfers.h"
#include "trace/replay.h"

namespace mindpipe {

/// A trace's steps once more, and how long each action takes in them.
struct ReplayedAtPorts {
  Replayed steps;
  ReplayTimes times;
};

/// The steps of a trace, had classes of transfers not found others at ports: all ranks run
/// their steps once more, and transfers pass ports as plans have them. What each waits there takes the place
/// of what it waited by the same rule where it ran; what it took beyond that stays.
ReplayedAtPorts replay_at_ports(const PortTransfers& transfers, const ReplayTimes& measured,
                                const std::vector<Unseen>& unseen);

}  // namespace mindpipe
