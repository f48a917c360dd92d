#include <algorithm>

#include "program/causal_planner.h"

namespace mindpipe {

void CausalPlanner::find_what_is_shared(const Network& network) {
  for (int unit = 0; unit < static_cast<int>(outline_.units.size()); ++unit) {
    const UnitCost& cost = outline_.units[unit];
    if (!cost.shared || cost.values == 0) continue;
    const std::int64_t integers = 2 * cost.gradients;  // of eight bytes for each of four
    const std::vector<int> homes = outline_.homes_of(unit);
    for (const int home : homes) {
      SharedUse use{.unit = unit, .travel = network.message.time(integers)};
      if (outline_.data > 1) use.sum = network.data.time(integers);
      use.block = *std::find_if(cost.blocks.begin(), cost.blocks.end(),
                                [&](int block) { return outline_.rank_of_block(block) == home; });
      for (const int peer : homes)
        if (peer != home) use.peers.push_back(peer);
      Stage& stage = stages_[home];
      stage.shared_update += cost.update;
      stage.expected += 1 + static_cast<int>(use.peers.size());
      stage.uses.push_back(std::move(use));
    }
  }
}

/// Whether what all share is there in the version that a subnet reads.
bool CausalPlanner::has_version(std::int64_t id, int stage) const {
  const Stage& here = stages_[stage];
  return here.uses.empty() || here.applied + 1 >= id / rules_.window;
}

std::int64_t CausalPlanner::window_size(std::int64_t window) const {
  const std::int64_t end = (window + 1) * rules_.window;
  return (last_ ? std::min(end, subnets_.known()) : end) - window * rules_.window;
}

/// No subnet follows: what waits for a group or a window to be complete may find that it is.
void CausalPlanner::close() {
  for (int stage = 0; stage < count_; ++stage) {
    update_group(stages_[stage]);
    const std::vector<std::int64_t>& passed = stages_[stage].passed;
    const std::int64_t window = static_cast<std::int64_t>(passed.size()) - 1;
    if (window >= 0 && subnets_.known() < (window + 1) * rules_.window &&
        passed[window] == window_size(window))
      complete_window(window, stage);
  }
}

/// Once all subnets of a window have passed, what they add to what all share goes to the other stages of use.
void CausalPlanner::pass_window(std::int64_t id, int stage) {
  Stage& here = stages_[stage];
  const std::int64_t window = id / rules_.window;
  if (static_cast<std::int64_t>(here.passed.size()) <= window) here.passed.resize(window + 1, 0);
  if (++here.passed[window] == window_size(window)) complete_window(window, stage);
}

void CausalPlanner::complete_window(std::int64_t window, int stage) {
  std::int64_t time = 0;
  for (const SharedUse& use : stages_[stage].uses) {
    if (outline_.data > 1)
      starts_.push_back({.what = PlannedStart::shared_sum,
                         .stage = stage,
                         .unit = use.unit,
                         .block = use.block,
                         .subnet = window,
                         .start = now_ + time,
                         .end = now_ + time + use.sum});
    time += use.sum;
  }
  if (time == 0) return exchange(window, stage);
  at(now_ + time, {.ending = Ending::shared_sum, .stage = stage, .subnet = window});
}

void CausalPlanner::exchange(std::int64_t window, int stage) {
  for (const SharedUse& use : stages_[stage].uses) {
    count_arrival(window, stage);
    for (const int peer : use.peers) {
      starts_.push_back({.what = PlannedStart::exchange,
                         .stage = stage,
                         .peer = peer,
                         .unit = use.unit,
                         .block = use.block,
                         .subnet = window,
                         .start = now_,
                         .end = now_ + use.travel});
      at(now_ + use.travel, {.ending = Ending::exchange, .stage = stage, .peer = peer, .subnet = window});
    }
  }
}

void CausalPlanner::count_arrival(std::int64_t window, int stage) {
  std::vector<int>& arrived = stages_[stage].arrived;
  if (static_cast<std::int64_t>(arrived.size()) <= window) arrived.resize(window + 1, 0);
  ++arrived[window];
  stages_[stage].dirty = true;
}

}  // namespace mindpipe
