#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trace/replay.h"
#include "trace/traced_ports.h"
#include "trace/work_model.h"

namespace mindpipe {

/// What a step would take with one cause of delay after another taken away.
struct StepLevel {
  std::string cause;                       ///< what is away from here on; of the first: nothing
  std::int64_t period = 0;                 ///< nanoseconds of a step then
  std::int64_t costs = 0;                  ///< what the level before took longer
  std::string remedy = {};                 ///< what makes it less; none where causes say who is to blame
  std::optional<std::int64_t> added = {};  ///< what it costs where it is the only one; see compare_with_ideal
  std::string interacts = {};  ///< the other cause that makes that another number, if it is far off
};

/// From the step as it ran to passes and an update that wait for nothing: the costs add up to the difference.
/// In this order: the host, noise, unequal micro-batches, slow ranks, unequal stages, contention (where
/// `traffic` has found some), each class of traffic, the schedule's own bubble.
std::vector<StepLevel> levels_of(const ReplayGraph& graph, const ReplayTimes& measured,
                                 const WorkModel& model, Counted counted = Counted::behind_the_first,
                                 const TracedPorts* traffic = nullptr);

/// Adds each cause to steps that have no other; where that costs otherwise than to take it away, by more than
/// a fifth of the larger, names the other cause with which it is most entangled.
void compare_with_ideal(std::vector<StepLevel>& levels, const ReplayGraph& graph, const ReplayTimes& measured,
                        const WorkModel& model, const TracedPorts* traffic);

/// The times of a trace whose host, noise, micro-batches, ranks and stages are all alike: traffic alone is as
/// it was.
ReplayTimes ideal_times(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model);

}  // namespace mindpipe
