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

/// How long units' states are under way: as their prices say, else as long as their bytes take.
std::int64_t CausalPlanner::move_time(const UnitMove& move) const {
  std::int64_t bytes = 0, priced = 0;
  for (const int unit : move.units) {
    const UnitCost& cost = outline_.units[unit];
    if (cost.move >= 0) priced += cost.move;
    else bytes += cost.moved;
  }
  const Link& link = network_.link(move.from, move.to);
  return link.latency + priced + link.carries(bytes);
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
  const std::int64_t end = now_ + move_time(move);
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
