#include "program/causal/causal_windows.h"

#include <algorithm>

#include "core/check.h"
#include "program/causal/sum_of_use.h"

namespace mindpipe {

CausalWindows::CausalWindows(const Outline& outline, const PriceList& prices, const SubnetsInFlight& subnets,
                             std::int64_t window, std::int64_t first)
    : outline_(outline), prices_(prices), subnets_(subnets), window_(window), ranks_(outline.ranks()) {
  if (window == 0) return;
  for (Rank& rank : ranks_) rank.applied = first / window;
  find_uses();
}

void CausalWindows::find_uses() {
  for (int unit = 0; unit < static_cast<int>(outline_.units.size()); ++unit) {
    const UnitCost& cost = outline_.units[unit];
    if (!cost.shared || cost.values == 0) continue;
    const std::vector<int> homes = outline_.ranks_of(unit);
    for (const int home : homes) {
      const int stage = outline_.stage_of_rank(home);
      Use use{.unit = unit};
      use.block = *std::find_if(cost.blocks.begin(), cost.blocks.end(),
                                [&](int block) { return outline_.rank_of_block(block) == stage; });
      for (const int peer : homes)
        if (peer != home) use.peers.push_back(peer);
      UpdateWork work;  // each unit is decided about by itself
      prices_.add(work, unit);
      ranks_[home].update += prices_.update(stage, work, false);
      ranks_[home].uses.push_back(std::move(use));
    }
  }
}

/// How many of the subnets [first, first + count) run in a lane.
std::int64_t CausalWindows::in_lane(int lane, std::int64_t first, std::int64_t count) const {
  const auto below = [&](std::int64_t end) { return (end + outline_.lanes - 1 - lane) / outline_.lanes; };
  return below(first + count) - below(first);
}

/// The subnets of a window in a lane, as far as is known.
std::int64_t CausalWindows::size(std::int64_t window, int lane) const {
  const std::int64_t whole = (window + 1) * window_,
                     end = subnets_.is_closed() ? std::min(whole, subnets_.known()) : whole;
  return in_lane(lane, window * window_, end - window * window_);
}

/// A rank may apply a window once its own sums are here and sent, and those of other ranks have arrived: of
/// all that have subnets in it.
int CausalWindows::expected(std::int64_t window, int rank) const {
  const auto adds = [&](int peer) { return size(window, outline_.lane_of_rank(peer)) > 0 ? 1 : 0; };
  int count = 0;
  for (const Use& use : ranks_[rank].uses) {
    count += adds(rank) * (1 + static_cast<int>(use.peers.size()));
    for (const int peer : use.peers) count += adds(peer);
  }
  return count;
}

void CausalWindows::pass(std::int64_t id, int rank, Clock& clock) {
  Rank& here = ranks_[rank];
  if (here.uses.empty()) return;
  const std::int64_t window = id / window_;
  if (static_cast<std::int64_t>(here.passed.size()) <= window) here.passed.resize(window + 1, 0);
  if (++here.passed[window] == size(window, outline_.lane_of_rank(rank))) complete(window, rank, clock);
}

void CausalWindows::close(Clock& clock) {
  for (int rank = 0; rank < outline_.ranks(); ++rank) {
    const std::vector<std::int64_t>& passed = ranks_[rank].passed;
    const std::int64_t window = static_cast<std::int64_t>(passed.size()) - 1;
    if (window < 0) continue;
    const int lane = outline_.lane_of_rank(rank);
    const std::int64_t all = size(window, lane);
    if (passed[window] == all && all < in_lane(lane, window * window_, window_))
      complete(window, rank, clock);
  }
}

void CausalWindows::complete(std::int64_t window, int rank, Clock& clock) {
  for (const Use& use : ranks_[rank].uses)
    if (outline_.data == 1) exchange(window, rank, use, clock);
    else clock.put(sum_of_use(outline_, prices_, rank, {Owner::window, window}, {use.unit, use.block}));
}

void CausalWindows::exchange(std::int64_t window, int rank, const Use& use, Clock& clock) {
  count(window, rank, clock);
  for (const int peer : use.peers) {
    const Price price = prices_.exchange(rank, peer, use.unit);
    exchanges_[{rank, peer}].push_back({.kind = TaskKind::exchange,
                                        .rank = rank,
                                        .peer = peer,
                                        .owner = {Owner::window, window},
                                        .chunk = outline_.stage_of_rank(rank),
                                        .unit = use.unit,
                                        .block = use.block,
                                        .parts = exchange_of(outline_, use.unit).parts,
                                        .lasts = price.lasts,
                                        .load = price.load});
    put_exchanges(rank, peer, clock);
  }
}

/// An exchange lands where that of two windows before lay, once the peer has applied it.
void CausalWindows::put_exchanges(int from, int to, Clock& clock) {
  std::deque<Task>& waiting = exchanges_[{from, to}];
  for (; !waiting.empty() && ranks_[to].applied + 1 >= waiting.front().owner.number; waiting.pop_front())
    clock.put(waiting.front());
}

void CausalWindows::count(std::int64_t window, int rank, Clock& clock) {
  std::vector<int>& exchanged = ranks_[rank].exchanged;
  if (static_cast<std::int64_t>(exchanged.size()) <= window) exchanged.resize(window + 1, 0);
  ++exchanged[window];
  clock.touch(rank);
}

bool CausalWindows::may_update(int rank, Task& update) const {
  const Rank& here = ranks_[rank];
  if (here.applied >= static_cast<std::int64_t>(here.exchanged.size()) ||
      here.exchanged[here.applied] != expected(here.applied, rank))
    return false;
  update = {.kind = TaskKind::update,
            .owner = {Owner::window, here.applied},
            .chunk = outline_.stage_of_rank(rank),
            .lasts = here.update};
  return true;
}

void CausalWindows::end(const Task& task, Clock& clock) {
  const std::int64_t window = task.owner.number;
  switch (task.kind) {
    case TaskKind::sum:
      for (const Use& use : ranks_[task.rank].uses)
        if (use.unit == task.unit) exchange(window, task.rank, use, clock);
      return;
    case TaskKind::exchange:
      count(window, task.rank, clock);
      return count(window, task.peer, clock);
    case TaskKind::update:  // what others have for the window after the next may arrive now
      ++ranks_[task.rank].applied;
      for (const Use& use : ranks_[task.rank].uses)
        for (const int peer : use.peers) put_exchanges(peer, task.rank, clock);
      return;
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::message:
    case TaskKind::gather:
    case TaskKind::scalars:
    case TaskKind::move:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      break;
  }
  MP_CHECK(false, "window {} has a task of another kind", window);
}

}  // namespace mindpipe
