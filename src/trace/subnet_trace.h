#pragma once
#include <deque>
#include <string>
#include <vector>

#include "trace/kept_actions.h"

namespace mindpipe {

/// One rank of a supernet's trace.
struct TracedSubnets {
  int rank = 0, replica = 0;
  int place = 0;           ///< of the program's ranks
  bool has_lanes = false;  ///< else the program's ranks are stages
  std::string name;
  std::vector<KeptAction> actions;  ///< in the order of its list, on the trace's clock
  std::vector<std::int64_t> bytes;  ///< that each of them moved
  std::deque<Recorder::Sum> sums;   ///< between the ranks that share a product
  std::vector<std::string> units;   ///< names of the model's
};

/// Events of the Chrome trace format (chrome_trace.h), which are one rank's alone. Each names its subnet, or
/// its window; passes and updates name their units with the versions that they saw, and what moves units
/// names them and the other rank of the program. Both ends of a message say which arrow is theirs, so that no
/// rank has to know another's times.
std::string subnet_events(const TracedSubnets& rank, std::int64_t zero);

}  // namespace mindpipe
