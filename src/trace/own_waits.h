#pragma once
#include <vector>

#include "core/traffic_class.h"
#include "trace/replay_times.h"

namespace mindpipe {

/// How long the messages of a class waited at ports for other messages of that class, by the rule of ports:
/// each was offered when both of its ends had come, and nothing else is there. [step][action] in nanoseconds,
/// of receives. `usual`: what a receive takes that meets nobody, by action; 0: not known, and none is there.
std::vector<std::vector<std::int64_t>> waits_among_messages(const StepTrace& trace, const ReplayGraph& graph,
                                                            const ReplayTimes& measured, TrafficClass of,
                                                            const std::vector<std::int64_t>& usual);

}  // namespace mindpipe
