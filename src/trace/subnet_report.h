#pragma once
#include <array>
#include <set>
#include <string>
#include <vector>

#include "trace/diagnosis.h"

namespace mindpipe {

/// Which subnets a trace has.
std::set<std::int64_t> subnets_of(const StepTrace& trace);

/// What subnets took, from the first begin of a compute queue to the last end: receives may be posted long
/// before.
std::int64_t computed_for(const StepTrace& trace);

/// How long the first rank of a stage computed in a trace of subnets, stood idle for each of the planner's
/// reasons, and had its host between actions: nanoseconds that add up to the time of the stage.
struct StageTime {
  std::int64_t computes = 0, host = 0;
  std::array<std::int64_t, wait_reasons> waits{};  ///< by WaitReason
  std::int64_t waited(WaitReason reason) const { return waits[static_cast<std::size_t>(reason)]; }
};
/// For each stage, lane after lane.
std::vector<StageTime> stage_times(const StepTrace& trace, const ReplayGraph& graph);

/// "rank 3 (lane 1, stage 1, data 0, tensor 0) computes 1.51 times as long as its peers, ...", with what that
/// costs a subnet.
std::string text_of_subnets(const Cause& cause, const StepTrace& trace, const ReplayGraph& graph);

/// What a trace of a supernet's last subnets says, in at most about twenty lines: its replay, where the time
/// of each stage goes, which ranks are slow, and the longest waits with what they were for. `prices`: what is
/// known of slow stages and dear candidates; may be empty.
std::string text_of_subnets(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                            const std::string& prices);

}  // namespace mindpipe
