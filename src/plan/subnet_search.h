#pragma once
#include <map>
#include <tuple>

#include "plan/layout_search.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// Sketches of a supernet's layouts, for whom blocks are priced once for all grids that share products alike.
class SubnetSketches {
 public:
  /// A layout with 98 % of what a subnet takes where no room binds anybody, as its bound: rooms are chosen so
  /// that they cost at most 1 % beside that, and save little. (One that binds may make a stream shorter, as
  /// queues that never interrupt have anomalies.)
  LayoutCandidate candidate(const Config& config, const LayoutChoice& layout);

 private:
  std::map<std::tuple<int, int, int>, Outline> known_;  ///< by tensor ranks, data ranks and micro-batch
};

/// What a plan of a supernet says of its layout: nanoseconds a subnet, and why ranks wait.
void take_figures(const Config& known, const RunPlan& plan, LayoutCandidate& candidate);

}  // namespace mindpipe
