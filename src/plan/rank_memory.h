#pragma once
#include <cstdint>
#include <vector>

#include "plan/run_plan.h"

namespace mindpipe {

/// What arrives of one part of a sum over data, the largest of all that the list has, on each data rank of a
/// pipeline rank.
std::vector<std::size_t> arriving_bytes(const Config& config, const RunPlan& plan, CostModel& costs,
                                        int rank);

/// What training keeps of the units of a pipeline rank.
struct TrainedBytes {
  std::int64_t gradients = 0, optimizer = 0;
  std::int64_t on_host = 0;  ///< masters and moments that come to the device for updates alone
};

/// The gradients, masters and moments that each data rank of a pipeline rank keeps.
std::vector<TrainedBytes> trained_units(const Config& config, const RunPlan& plan, CostModel& costs,
                                        int rank);

/// The running statistics of the blocks of a pipeline rank.
std::int64_t statistics_bytes(const RunPlan& plan, CostModel& costs, int rank);

}  // namespace mindpipe
