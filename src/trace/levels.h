#pragma once
#include <string>
#include <vector>

#include "trace/replay.h"
#include "trace/traced_ports.h"
#include "trace/work_model.h"

namespace mindpipe {

/// What a step would take with one cause of delay after another taken away.
struct StepLevel {
  std::string cause;        ///< what is away from here on; of the first: nothing
  std::int64_t period = 0;  ///< nanoseconds of a step then
  std::int64_t costs = 0;   ///< what the level before took longer
  std::string remedy = {};  ///< what makes it less; none where causes say who is to blame
};

/// From the step as it ran to passes and an update that wait for nothing: the costs add up to the difference.
/// In this order: the host, noise, unequal micro-batches, slow ranks, unequal stages, contention (where
/// `traffic` has found some), each class of traffic, the schedule's own bubble.
std::vector<StepLevel> levels_of(const ReplayGraph& graph, const ReplayTimes& measured,
                                 const WorkModel& model, Counted counted = Counted::behind_the_first,
                                 const TracedPorts* traffic = nullptr);

/// The times of a trace whose host, noise, micro-batches, ranks and stages are all alike: traffic alone is as
/// it was.
ReplayTimes ideal_times(const ReplayGraph& graph, const ReplayTimes& measured, const WorkModel& model);

/// Whether an action waits for nothing of its step.
bool begins_step(const ReplayGraph& graph, int action);
/// Which lags are alike: those of one kind, and those of actions that begin a step.
int lag_class(const ReplayGraph& graph, int action);
/// The median lag of each class over all ranks and steps.
std::vector<std::int64_t> usual_lags(const ReplayGraph& graph, const ReplayTimes& measured);

}  // namespace mindpipe
