#pragma once
#include "plan/run_plan.h"

namespace mindpipe {

/// Candidates of the block that has the most.
int most_candidates(const Outline& outline);
/// The rooms of one pipeline rank that trains a supernet, each large enough for any subnet. `passes` grows to
/// the working memory of its passes.
SubnetRooms rooms_of(const Config& config, const RunPlan& plan, CostModel& costs, int rank,
                     PassFootprint& passes);
/// What arrives of one part of a sum over data, the largest of all that a supernet's list may have, on each
/// data rank: gradients of units, and whole numbers of what all subnets share.
std::vector<std::size_t> arriving_of_subnets(const Config& config, const RunPlan& plan, CostModel& costs,
                                             int rank);
/// Adds what training a supernet takes on a rank beside values and an evaluation.
void add_subnets(BytesByClass& bytes, const Config& config, const RunPlan& plan, CostModel& costs, int rank);

}  // namespace mindpipe
