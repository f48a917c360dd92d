#include <algorithm>

#include "program/causal/causal_planner.h"

namespace mindpipe {

void CausalPlanner::find_what_is_shared() {
  for (int unit = 0; unit < static_cast<int>(outline_.units.size()); ++unit) {
    const UnitCost& cost = outline_.units[unit];
    if (!cost.shared || cost.values == 0) continue;
    const std::vector<int> homes = outline_.ranks_of(unit);
    for (const int home : homes) {
      SharedUse use{.unit = unit};
      use.block = *std::find_if(cost.blocks.begin(), cost.blocks.end(), [&](int block) {
        return outline_.rank_of_block(block) == outline_.stage_of_rank(home);
      });
      for (const int peer : homes)
        if (peer != home) use.peers.push_back(peer);
      UpdateWork work;  // each unit is decided about by itself
      prices_.add(work, unit);
      ranks_[home].shared_update += prices_.update(outline_.stage_of_rank(home), work, false);
      ranks_[home].uses.push_back(std::move(use));
    }
  }
}

/// Whether what all share is there in the version that a subnet reads.
bool CausalPlanner::has_version(std::int64_t id, int rank) const {
  const Rank& here = ranks_[rank];
  return here.uses.empty() || here.applied + 1 >= id / rules_.window;
}

/// The subnets of a window, as far as is known.
std::int64_t CausalPlanner::window_size(std::int64_t window) const {
  const std::int64_t end = (window + 1) * rules_.window;
  return (last_ ? std::min(end, subnets_.known()) : end) - window * rules_.window;
}

/// How many of the subnets [first, first + count) run in a lane.
std::int64_t CausalPlanner::in_lane(int lane, std::int64_t first, std::int64_t count) const {
  const auto below = [&](std::int64_t end) { return (end + outline_.lanes - 1 - lane) / outline_.lanes; };
  return below(first + count) - below(first);
}

std::int64_t CausalPlanner::window_size(std::int64_t window, int lane) const {
  return in_lane(lane, window * rules_.window, window_size(window));
}

/// A rank may apply a window once its own sums are here and sent, and those of other ranks have arrived: of
/// all that have subnets in it.
int CausalPlanner::expected(std::int64_t window, int rank) const {
  const auto adds = [&](int peer) { return window_size(window, outline_.lane_of_rank(peer)) > 0 ? 1 : 0; };
  int count = 0;
  for (const SharedUse& use : ranks_[rank].uses) {
    count += adds(rank) * (1 + static_cast<int>(use.peers.size()));
    for (const int peer : use.peers) count += adds(peer);
  }
  return count;
}

/// No subnet follows: what waits for a group or a window to be complete may find that it is.
void CausalPlanner::close() {
  for (int rank = 0; rank < outline_.ranks(); ++rank) {
    update_group(ranks_[rank]);
    ranks_[rank].dirty = true;
    const std::vector<std::int64_t>& passed = ranks_[rank].passed;
    const std::int64_t window = static_cast<std::int64_t>(passed.size()) - 1;
    if (window < 0) continue;
    const int lane = outline_.lane_of_rank(rank);
    const std::int64_t size = window_size(window, lane);
    if (passed[window] == size && size < in_lane(lane, window * rules_.window, rules_.window))
      complete_window(window, rank);
  }
}

/// Once all subnets of a window have passed, what they add to what all share goes to the other ranks of use.
void CausalPlanner::pass_window(std::int64_t id, int rank) {
  Rank& here = ranks_[rank];
  const std::int64_t window = id / rules_.window;
  if (static_cast<std::int64_t>(here.passed.size()) <= window) here.passed.resize(window + 1, 0);
  if (++here.passed[window] == window_size(window, outline_.lane_of_rank(rank)))
    complete_window(window, rank);
}

void CausalPlanner::complete_window(std::int64_t window, int rank) {
  for (const SharedUse& use : ranks_[rank].uses)
    if (outline_.data == 1) exchange(window, rank, use);
    else
      put(ranks_[rank].sums,
          {.what = PlannedStart::shared_sum,
           .rank = rank,
           .unit = use.unit,
           .block = use.block,
           .subnet = window},
          prices_.sum(use.unit));
}

void CausalPlanner::exchange(std::int64_t window, int rank, const SharedUse& use) {
  count_exchanged(window, rank);
  for (const int peer : use.peers)
    put(exchanges_[{rank, peer}],
        {.what = PlannedStart::exchange,
         .rank = rank,
         .peer = peer,
         .unit = use.unit,
         .block = use.block,
         .subnet = window},
        prices_.exchange(rank, peer, use.unit));
}

void CausalPlanner::end_exchange(int from, int to) {
  const PlannedStart exchange = end_first(exchanges_[{from, to}]);
  count_exchanged(exchange.subnet, from);
  count_exchanged(exchange.subnet, to);
}

void CausalPlanner::count_exchanged(std::int64_t window, int rank) {
  std::vector<int>& exchanged = ranks_[rank].exchanged;
  if (static_cast<std::int64_t>(exchanged.size()) <= window) exchanged.resize(window + 1, 0);
  ++exchanged[window];
  ranks_[rank].dirty = true;
}

/// What others have for the window after the next may arrive now.
void CausalPlanner::end_shared_update(int rank) {
  ++ranks_[rank].applied;
  for (const SharedUse& use : ranks_[rank].uses)
    for (const int peer : use.peers) begin_next(exchanges_[{peer, rank}]);
}

}  // namespace mindpipe
