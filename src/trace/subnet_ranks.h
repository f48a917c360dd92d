#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trace/causes.h"

namespace mindpipe {

/// How many times as long as its price a rank computed the passes of one subnet.
struct PricedPasses {
  int rank = 0;
  std::int64_t subnet = 0;
  double times = 1;
};

/// The ranks that are accused in a trace of subnets, the dearest first: those that compute longer, beside
/// prices that all share, than the ranks of the same stage in other lanes and replicas. Passes have the
/// waits for tensor sums in them, so that ranks that share products are compared, and accused, as one: by
/// their first. `passes`: of all ranks, by their numbers.
std::vector<Cause> slow_ranks_of_subnets(const ReplayGraph& graph, const ReplayTimes& measured,
                                         std::span<const PricedPasses> passes);

}  // namespace mindpipe
