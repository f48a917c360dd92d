#pragma once
#include <optional>
#include <vector>

#include "trace/work_model.h"

namespace mindpipe {

/// How many times as long as the mean of the others a stage takes. `time`: of each.
double beside_others(const std::vector<double>& time, int stage);
/// How many times as long as the mean of the others a stage takes of what its passes take on paper; none:
/// paper says nothing of that.
std::optional<double> beside_paper(const ReplayGraph& graph, const Durations& paper,
                                   const std::vector<double>& time, int stage);

/// What stages compute in a step once whole blocks have moved between neighbours as far as that makes them
/// more alike. `time`: what they compute now. A stage that is longer than others by less than a block stays
/// so: no cut makes it shorter.
std::vector<double> even_stages(const WorkModel& model, const std::vector<double>& time);
/// Whether a trace says of more than one block a chunk, so that some may move.
bool has_blocks_to_move(const WorkModel& model);

}  // namespace mindpipe
