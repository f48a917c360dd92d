#include "program/causal/causal_planner.h"
#include "program/causal/sorted_ids.h"

namespace mindpipe {

void CausalPlanner::send(Channel& channel, int rank, bool with_forward, std::int64_t id, int micro_batch) {
  channel.waiting.emplace_back(id, micro_batch);
  if (channel.ends < 0) start_message(channel, rank, with_forward);
}

void CausalPlanner::start_message(Channel& channel, int rank, bool with_forward) {
  const auto& [id, micro_batch] = channel.waiting.front();
  channel.ends = now_ + channel.time;
  starts_.push_back({.what = PlannedStart::message,
                     .with_forward = with_forward,
                     .rank = rank,
                     .micro_batch = micro_batch,
                     .subnet = id,
                     .first = with_forward ? subnets_.last_block(id, rank) : subnets_.first_block(id, rank),
                     .slot = subnets_.slot(id, rank + (with_forward ? 1 : -1), micro_batch),
                     .start = now_,
                     .end = channel.ends});
  at(channel.ends,
     {.ending = with_forward ? Ending::forward_message : Ending::backward_message, .rank = rank});
}

void CausalPlanner::arrive(Channel& channel, int rank, bool with_forward) {
  const auto [id, micro_batch] = channel.waiting.front();
  channel.waiting.pop_front();
  channel.ends = -1;
  ranks_[rank].dirty = true;
  const int peer = rank + (with_forward ? 1 : -1);
  Rank& there = ranks_[peer];
  there.dirty = true;
  StageWork& work = subnets_.at(id, peer);
  ++(with_forward ? work.arrived : work.gradients);
  insert_sorted(with_forward ? there.to_forward : there.to_backward, id);
  if (!channel.waiting.empty()) start_message(channel, rank, with_forward);
}

/// Puts a transfer behind those of its way.
void CausalPlanner::put(Way& way, PlannedStart transfer, std::int64_t time) {
  transfer.end = time;
  way.waiting.push_back(std::move(transfer));
  begin_next(way);
}

/// An exchange lands where that of two windows before lay, once the peer has applied it.
bool CausalPlanner::may_begin(const PlannedStart& transfer) const {
  return transfer.what != PlannedStart::exchange || ranks_[transfer.peer].applied + 1 >= transfer.subnet;
}

void CausalPlanner::begin_next(Way& way) {
  if (way.is_taken || way.waiting.empty() || !may_begin(way.waiting.front())) return;
  way.is_taken = true;
  PlannedStart& transfer = way.waiting.front();
  transfer.start = now_;
  transfer.end += now_;
  starts_.push_back(transfer);
  at(transfer.end, {.ending = transfer.what == PlannedStart::exchange ? Ending::exchange : Ending::sum,
                    .rank = transfer.rank,
                    .peer = transfer.peer});
}

/// The next one begins.
PlannedStart CausalPlanner::end_first(Way& way) {
  const PlannedStart transfer = std::move(way.waiting.front());
  way.waiting.pop_front();
  way.is_taken = false;
  begin_next(way);
  return transfer;
}

/// Sums the gradients of a subnet's units over data, the last block's first.
void CausalPlanner::put_sums(std::int64_t id, int rank) {
  StageWork& work = subnets_.at(id, rank);
  work.sums_left = work.update.units;
  if (work.sums_left == 0) return gradients_are_complete(id, rank);
  for (int block = subnets_.last_block(id, rank); block-- > subnets_.first_block(id, rank);)
    for (int number = subnets_.most_units(); number-- > 0;)
      if (const int unit = subnets_.unit(id, block, number); unit >= 0)
        put(ranks_[rank].sums,
            {.what = PlannedStart::sum,
             .rank = rank,
             .unit = unit,
             .block = block,
             .subnet = id,
             .slab = work.slab},
            prices_.sum(unit));
}

void CausalPlanner::end_sum(int rank) {
  Rank& here = ranks_[rank];
  const PlannedStart sum = end_first(here.sums);
  if (sum.what == PlannedStart::sum) {
    if (--subnets_.at(sum.subnet, rank).sums_left == 0) gradients_are_complete(sum.subnet, rank);
    return;
  }
  for (const SharedUse& use : here.uses)
    if (use.unit == sum.unit) exchange(sum.subnet, rank, use);
}

/// Puts a move behind those from the same rank to the same rank.
void CausalPlanner::queue_move(const UnitMove& move) {
  std::deque<UnitMove>& channel = moving_[{move.from, move.to}];
  channel.push_back(move);
  if (channel.size() == 1) await_link(move.from, move.to);
}

/// Channels of one rank share its link: one move is under way, and readers are served in turn.
void CausalPlanner::await_link(int from, int to) {
  leaving_[from].push_back(to);
  if (leaving_[from].size() == 1) start_move(from, to);
}

/// What waits behind a move for the same reader goes with it.
void CausalPlanner::start_move(int from, int to) {
  std::deque<UnitMove>& channel = moving_[{from, to}];
  UnitMove move = std::move(channel.front());
  channel.pop_front();
  for (; !channel.empty() && channel.front().subnet == move.subnet; channel.pop_front())
    move.units.insert(move.units.end(), channel.front().units.begin(), channel.front().units.end());
  std::sort(move.units.begin(), move.units.end());
  const std::int64_t end = now_ + prices_.move(from, to, move.units);
  starts_.push_back({.what = PlannedStart::move,
                     .rank = from,
                     .peer = to,
                     .subnet = move.subnet,
                     .start = now_,
                     .end = end,
                     .goes_home = move.subnet == subnets_.known(),
                     .units = move.units});
  channel.push_front(std::move(move));
  at(end, {.ending = Ending::move, .rank = from, .peer = to});
}

/// The reader's stage may begin once no other unit is missing. Behind a cut there is none yet.
void CausalPlanner::end_move(int from, int to) {
  std::deque<UnitMove>& channel = moving_[{from, to}];
  const UnitMove move = std::move(channel.front());
  channel.pop_front();
  if (move.subnet < subnets_.known()) {
    subnets_.at(move.subnet, to).missing -= static_cast<int>(move.units.size());
    ranks_[to].dirty = true;
  }
  leaving_[from].pop_front();
  if (!leaving_[from].empty()) start_move(from, leaving_[from].front());
  if (!channel.empty()) await_link(from, to);
}

/// Lets all units that were used since the last cut go to all other ranks of their home. False: none was.
bool CausalPlanner::bring_home() {
  if (!moves_) return false;
  const std::vector<UnitMove> moves = subnets_.bring_home();
  for (const UnitMove& move : moves) queue_move(move);
  return !moves.empty();
}

}  // namespace mindpipe
