#include "program/causal/unit_users.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "program/choice_parts.h"

namespace mindpipe {

UnitUsers::UnitUsers(const Outline& outline, std::int64_t first)
    : outline_(outline), blocks_(outline.all_blocks()), first_(first), newest_(outline.units.size()) {
  for (int block = 0; block < blocks_; ++block)
    most_units_ = std::max(most_units_, static_cast<int>(choice_parts(outline, block).size()));
}

void UnitUsers::add_subnet() {
  uses_.resize(uses_.size() + static_cast<std::size_t>(blocks_ * most_units_));
  moves_.emplace_back();
}

bool UnitUsers::add_use(std::int64_t id, int block, int number, int unit, int rank) {
  MP_CHECK(number < most_units_, "block {}: a subnet with {} units, and at most {} are expected", block,
           number + 1, most_units_);
  use(id, block, number).unit = unit;
  User& newest = newest_[unit];
  if (newest.id < 0)  // every lane has it at home
    newest.rank = outline_.lane_of_rank(rank) * outline_.stages + outline_.rank_of_block(block);
  const bool waits = newest.id >= first_ && !use(newest.id, newest.block, newest.number).updated;
  const bool moves = newest.rank != rank;
  if (waits) {
    Use& before = use(newest.id, newest.block, newest.number);
    before.next = id;
    before.next_rank = rank;
  }
  if (moves) add_move(id, unit, newest, rank, waits);
  newest = {id, block, number, rank};
  return waits || moves;
}

/// Units of one user travel together: they are ready at the same time.
void UnitUsers::add_move(std::int64_t id, int unit, const User& user, int to, bool waits) {
  std::vector<UnitMove>& all = moves_[id - first_];
  auto found = std::find_if(all.begin(), all.end(), [&](const UnitMove& move) {
    return move.user == user.id && move.from == user.rank && move.to == to;
  });
  if (found == all.end())
    found = all.insert(all.end(), {.subnet = id, .user = user.id, .from = user.rank, .to = to});
  found->units.insert(std::upper_bound(found->units.begin(), found->units.end(), unit), unit);
  found->waiting += waits ? 1 : 0;
}

std::vector<UnitMove> UnitUsers::ready_moves(std::int64_t id) const {
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

UnitMove& UnitUsers::move(std::int64_t id, int unit, int from) {
  for (UnitMove& move : moves_[id - first_])
    if (move.from == from && std::binary_search(move.units.begin(), move.units.end(), unit)) return move;
  fail(Exit::internal, "subnet {} awaits no unit {} from rank {}", id, unit, from);
}

std::vector<int> UnitUsers::units(std::int64_t id, int first, int last) const {
  std::vector<int> all;
  for (int block = first; block < last; ++block)
    for (int number = 0; number < most_units_; ++number)
      if (const int used = unit(id, block, number); used >= 0) all.push_back(used);
  std::sort(all.begin(), all.end());
  return all;
}

/// Each rank serves the lane behind its own first, so that no two of a stage begin with the same one.
std::vector<UnitMove> UnitUsers::bring_home(std::int64_t next) {
  std::map<std::tuple<int, int, int>, UnitMove> moves;  // by from, how many lanes further, to
  for (int unit = 0; unit < static_cast<int>(newest_.size()); ++unit) {
    const User user = std::exchange(newest_[unit], {});
    if (user.id < 0) continue;
    const int home = outline_.rank_of_block(user.block);
    for (int lane = 0; lane < outline_.lanes; ++lane)
      if (const int to = lane * outline_.stages + home; to != user.rank) {
        const int further = (lane - outline_.lane_of_rank(user.rank) + outline_.lanes) % outline_.lanes;
        UnitMove& move = moves[{user.rank, further, to}];
        move.subnet = next;
        move.from = user.rank;
        move.to = to;
        move.units.push_back(unit);
      }
  }
  std::vector<UnitMove> all;
  for (auto& [ends, move] : moves) all.push_back(std::move(move));
  return all;
}

void UnitUsers::forget(std::int64_t oldest) {
  uses_.erase(uses_.begin(), uses_.begin() + (oldest - first_) * blocks_ * most_units_);
  moves_.erase(moves_.begin(), moves_.begin() + (oldest - first_));
  first_ = oldest;
}

}  // namespace mindpipe
