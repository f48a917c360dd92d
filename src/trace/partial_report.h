#pragma once
#include <string>
#include <vector>

#include "trace/replay_graph.h"

namespace mindpipe {

/// The ranks whose times a trace lacks: they have no steps.
std::vector<int> missing_ranks(const StepTrace& trace);

/// What a trace says though times of ranks are missing in it: who that is, what the others compute in a step,
/// and which of them is slower than its peers in that. Nothing is replayed, since nobody knows who waited for
/// a missing rank; of a missing rank nothing is said but that. At most about twenty lines.
std::string partial_report(const StepTrace& trace, const ReplayGraph& graph);

}  // namespace mindpipe
