#pragma once
#include "app/train/trace_clock.h"
#include "runtime/worker.h"

namespace mindpipe {

/// What this rank did with a supernet's last subnets, at a drain, as one step that is run once: its list,
/// whose actions wait for each other as they did, and their times.
struct SubnetRows {
  std::vector<Action> list;
  RankTimes times;
};
SubnetRows subnet_rows(Worker& worker, const TraceClock& clock);

}  // namespace mindpipe
