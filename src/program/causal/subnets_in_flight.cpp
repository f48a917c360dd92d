#include "program/causal/subnets_in_flight.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "program/choice_parts.h"

namespace mindpipe {

SubnetsInFlight::SubnetsInFlight(const Outline& outline, const PriceList& prices, std::int64_t first)
    : outline_(outline),
      own_cuts_(outline),
      prices_(prices),
      stages_(outline.stages),
      micro_batches_(outline.micro_batches),
      blocks_(outline.all_blocks()),
      newest_(outline.units.size()),
      first_(first),
      known_(first),
      oldest_(first) {
  for (int block = 0; block < blocks_; ++block)
    most_units_ = std::max(most_units_, static_cast<int>(choice_parts(outline, block).size()));
  for (int rank = 0; rank < outline.ranks(); ++rank) stage_of_.push_back(outline.stage_of_rank(rank));
  for (int lane = 0; lane < outline.lanes; ++lane)
    oldest_of_lane_.push_back(first + (lane - first % outline.lanes + outline.lanes) % outline.lanes);
}

void SubnetsInFlight::add(const Subnet& subnet) {
  MP_CHECK(subnet.id == known_, "subnet {} comes where {} is next", subnet.id, known_);
  ++known_;
  work_.resize(work_.size() + stages_);
  slots_.resize(slots_.size() + static_cast<std::size_t>(stages_ * micro_batches_), -1);
  uses_.resize(uses_.size() + static_cast<std::size_t>(blocks_ * most_units_));
  stages_left_.push_back(stages_);
  moves_.emplace_back();
  const std::vector<int>& cut = own_cuts_.of(subnet.choice);
  cuts_.insert(cuts_.end(), cut.begin(), cut.end());
  for (int stage = 0; stage < stages_; ++stage) {
    const int rank = outline_.rank_of_subnet(subnet.id, stage);
    StageProgress& progress = at(subnet.id, rank);
    for (int block = cut[stage]; block < cut[stage + 1]; ++block) {
      int number = 0;
      for_candidates(outline_, subnet.choice, block, [&](int candidate) {
        const BlockCost& cost = outline_.cost(block, candidate);
        progress.forward.add(cost, traits_of_pass(ActionKind::forward));
        progress.backward.add(cost, traits_of_pass(ActionKind::backward));
        for (const int unit : outline_.units_used[block][candidate])
          if (!outline_.units[unit].shared) add_use(subnet.id, block, number++, unit, rank);
      });
    }
  }
}

/// Notes that a subnet uses a unit, who used it before, and where.
void SubnetsInFlight::add_use(std::int64_t id, int block, int number, int unit, int rank) {
  MP_CHECK(number < most_units_, "block {}: a subnet with {} units, and at most {} are expected", block,
           number + 1, most_units_);
  StageProgress& progress = at(id, rank);
  use(id, block, number).unit = unit;
  prices_.add(progress.update, unit);
  progress.backward.clear += outline_.units[unit].clear;
  User& newest = newest_[unit];
  if (newest.id < 0)  // every lane has it at home
    newest.rank = outline_.lane_of_rank(rank) * stages_ + outline_.rank_of_block(block);
  const bool waits = newest.id >= first_ && !at(newest.id, newest.rank).updated;
  const bool moves = newest.rank != rank;
  if (waits) {
    Use& before = use(newest.id, newest.block, newest.number);
    before.next = id;
    before.next_rank = rank;
  }
  if (moves) add_move(id, unit, newest, rank, waits);
  if (waits || moves) ++progress.missing;
  newest = {id, block, number, rank};
}

/// Units of one user travel together: they are ready at the same time.
void SubnetsInFlight::add_move(std::int64_t id, int unit, const User& user, int to, bool waits) {
  std::vector<UnitMove>& all = moves_[id - first_];
  auto found = std::find_if(all.begin(), all.end(), [&](const UnitMove& move) {
    return move.user == user.id && move.from == user.rank && move.to == to;
  });
  if (found == all.end())
    found = all.insert(all.end(), {.subnet = id, .user = user.id, .from = user.rank, .to = to});
  found->units.insert(std::upper_bound(found->units.begin(), found->units.end(), unit), unit);
  found->waiting += waits ? 1 : 0;
}

std::vector<UnitMove> SubnetsInFlight::ready_moves(std::int64_t id) const {
  std::vector<UnitMove> ready;
  for (const UnitMove& move : moves_[id - first_]) {
    if (move.waiting > 0) continue;
    const auto same = std::find_if(ready.begin(), ready.end(), [&](const UnitMove& other) {
      return other.from == move.from && other.to == move.to;
    });
    if (same == ready.end()) ready.push_back(move);
    else same->units.insert(same->units.end(), move.units.begin(), move.units.end());
  }
  for (UnitMove& move : ready) std::sort(move.units.begin(), move.units.end());
  return ready;
}

UnitMove& SubnetsInFlight::move(std::int64_t id, int unit, int from) {
  for (UnitMove& move : moves_[id - first_])
    if (move.from == from && std::binary_search(move.units.begin(), move.units.end(), unit)) return move;
  fail(Exit::internal, "subnet {} awaits no unit {} from rank {}", id, unit, from);
}

void SubnetsInFlight::end_stage(std::int64_t id) {
  --stages_left_[id - first_];
  const auto has_ended = [&](std::int64_t one) { return one < known_ && stages_left_[one - first_] == 0; };
  while (has_ended(oldest_)) ++oldest_;
  std::int64_t& of_lane = oldest_of_lane_[id % outline_.lanes];
  while (has_ended(of_lane)) of_lane += outline_.lanes;
}

std::vector<int> SubnetsInFlight::units(std::int64_t id, int rank) const {
  std::vector<int> all;
  for (int block = first_block(id, rank); block < last_block(id, rank); ++block)
    for (int number = 0; number < most_units_; ++number)
      if (const int used = unit(id, block, number); used >= 0) all.push_back(used);
  std::sort(all.begin(), all.end());
  return all;
}

/// Each rank serves the lane behind its own first, so that no two of a stage begin with the same one.
std::vector<UnitMove> SubnetsInFlight::bring_home() {
  std::map<std::tuple<int, int, int>, UnitMove> moves;  // by from, how many lanes further, to
  for (int unit = 0; unit < static_cast<int>(newest_.size()); ++unit) {
    const User user = std::exchange(newest_[unit], {});
    if (user.id < 0) continue;
    const int home = outline_.rank_of_block(user.block);
    for (int lane = 0; lane < outline_.lanes; ++lane)
      if (const int to = lane * stages_ + home; to != user.rank) {
        const int further = (lane - outline_.lane_of_rank(user.rank) + outline_.lanes) % outline_.lanes;
        UnitMove& move = moves[{user.rank, further, to}];
        move.subnet = known_;
        move.from = user.rank;
        move.to = to;
        move.units.push_back(unit);
      }
  }
  std::vector<UnitMove> all;
  for (auto& [ends, move] : moves) all.push_back(std::move(move));
  return all;
}

void SubnetsInFlight::forget() {
  const auto drop = [&](auto& entries, std::int64_t of_each) {
    entries.erase(entries.begin(), entries.begin() + (oldest_ - first_) * of_each);
  };
  drop(work_, stages_);
  drop(slots_, stages_ * micro_batches_);
  drop(uses_, std::int64_t{blocks_} * most_units_);
  drop(stages_left_, 1);
  drop(cuts_, stages_ + 1);
  drop(moves_, 1);
  first_ = oldest_;
}

}  // namespace mindpipe
