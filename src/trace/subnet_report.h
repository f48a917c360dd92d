#pragma once
#include <array>
#include <string>
#include <vector>

#include "trace/diagnosis.h"

namespace mindpipe {

/// How long the first rank of a stage computed in a trace of subnets, stood idle for each of the planner's
/// reasons, and had its host between actions: nanoseconds that add up to the time of the stage.
struct StageTime {
  std::int64_t computes = 0, host = 0;
  std::array<std::int64_t, wait_reasons> waits{};  ///< by WaitReason
};
std::vector<StageTime> stage_times(const StepTrace& trace, const ReplayGraph& graph);

/// What a trace of a supernet's last subnets says, in at most about twenty lines: its replay, where the time
/// of each stage goes, and the longest waits with what they were for. `prices`: what is known of slow stages
/// and dear candidates; may be empty.
std::string text_of_subnets(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                            const std::string& prices);

}  // namespace mindpipe
