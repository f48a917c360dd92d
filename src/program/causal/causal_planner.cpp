#include "program/causal/causal_planner.h"

#include <algorithm>

#include "core/check.h"
#include "core/give_way.h"
#include "core/random.h"
#include "program/causal/sorted_ids.h"

namespace mindpipe {
namespace {

int room_count(const std::vector<int>& counts, int stage) { return counts.empty() ? 0 : counts[stage]; }

}  // namespace

CausalPlanner::Rank::Rank(const SubnetRules& rules, int stage, int micro_batches)
    : slots(room_count(rules.slots, stage), rules.keeps_slots ? micro_batches : 0),
      slabs(room_count(rules.slabs, stage), rules.keeps_slab ? 1 : 0) {}

CausalPlanner::CausalPlanner(const Outline& outline, const Network& network, SubnetRules rules,
                             std::int64_t first)
    : outline_(outline),
      rules_(std::move(rules)),
      prices_(outline, network),
      count_(outline.stages),
      micro_batches_(outline.micro_batches),
      subnets_(outline, prices_, first),
      admitted_(first),
      begin_(first),
      moves_(outline.has_moves()) {
  MP_CHECK(outline.chunks == 1, "subnets on {} chunks a stage", outline.chunks);
  MP_CHECK(!moves_ || rules_.order == SubnetOrder::causal, "units move where subnets are in causal order");
  MP_CHECK(rules_.window == 0 || first % rules_.window == 0, "subnet {} begins no window of {}", first,
           rules_.window);
  for (int rank = 0; rank < outline.ranks(); ++rank) {
    const int stage = outline.stage_of_rank(rank);
    ranks_.emplace_back(rules_, stage, micro_batches_);
    ranks_[rank].updated = first;
    ranks_[rank].applied = rules_.window > 0 ? first / rules_.window : 0;
    const auto time = [&](int peer, int cut, bool with_forward) {
      return prices_.message(rank, peer, outline.cuts[cut], with_forward);
    };
    if (stage + 1 < count_) ranks_[rank].forwards.time = time(rank + 1, outline.first_block[stage + 1], true);
    if (stage > 0) ranks_[rank].backwards.time = time(rank - 1, outline.first_block[stage], false);
  }
  if (rules_.window > 0) find_what_is_shared();
}

int CausalPlanner::most_slots(int stage) const {
  int most = 0;
  for (std::size_t rank = stage; rank < ranks_.size(); rank += count_)
    most = std::max(most, ranks_[rank].slots.most());
  return most;
}

int CausalPlanner::most_slabs(int stage) const {
  int most = 0;
  for (std::size_t rank = stage; rank < ranks_.size(); rank += count_)
    most = std::max(most, ranks_[rank].slabs.most());
  return most;
}

std::vector<PlannedStart> CausalPlanner::next(std::span<const Subnet> more, bool last) {
  subnets_.forget();
  starts_.clear();
  if (last_) begin_ = subnets_.known();
  for (const Subnet& subnet : more) {
    give_way(50);  // a cut of its own takes so long to find
    subnets_.add(subnet);
  }
  last_ = last;
  if (last) close();
  for (int lane = 0; lane < outline_.lanes; ++lane) ranks_[lane * count_].dirty = true;
  while (admit()) {
    give_way();
    for (int rank = 0; rank < outline_.ranks(); ++rank) {
      if (!ranks_[rank].dirty) continue;
      if (!decide(rank)) return std::move(starts_);
      ranks_[rank].dirty = false;
    }
    if (events_.empty() && !(last_ && subnets_.oldest() == subnets_.known() && bring_home())) break;
    now_ = events_.front().time;
    while (!events_.empty() && events_.front().time == now_) {
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      const Event event = events_.back();
      events_.pop_back();
      end(event);
    }
  }
  if (events_.empty() && subnets_.oldest() < subnets_.known() && !awaits_subnets()) stands_still();
  return std::move(starts_);
}

/// Where units move, one may have to for a subnet that would be admitted now and is not known yet.
bool CausalPlanner::awaits_subnets() const {
  return moves_ && !last_ && subnets_.known() < subnets_.oldest() + rules_.admission;
}

/// Lets subnets up to the admission window come to the first stage. False: some of them are not known yet.
bool CausalPlanner::admit() {
  const std::int64_t end = std::min(subnets_.known(), subnets_.oldest() + rules_.admission);
  for (; admitted_ < end; ++admitted_) {
    const int rank = outline_.rank_of_subnet(admitted_, 0);
    subnets_.at(admitted_, rank).arrived = micro_batches_;
    ranks_[rank].to_forward.push_back(admitted_);
    ranks_[rank].dirty = true;
    for (const UnitMove& move : subnets_.ready_moves(admitted_)) queue_move(move);
  }
  return !awaits_subnets();
}

bool CausalPlanner::decide(int rank) {
  if (ranks_[rank].busy) return true;
  ranks_[rank].idle.look(now_);
  if (drawn(2) == 1) begin_forward(rank);
  if (ranks_[rank].busy || begin_update(rank) || begin_backward(rank)) return true;
  return begin_forward(rank);
}

/// One of so many: the first, unless the order is drawn.
std::size_t CausalPlanner::drawn(std::size_t count) {
  if (rules_.draws == 0 || count < 2) return 0;
  return RandomStream{.seed = rules_.draws, .purpose = purpose_of("order")}.word(drawn_++) % count;
}

bool CausalPlanner::begin_update(int rank) {
  Rank& here = ranks_[rank];
  if (here.applied < static_cast<std::int64_t>(here.exchanged.size()) &&
      here.exchanged[here.applied] == expected(here.applied, rank)) {
    begin(rank, {.what = PlannedStart::shared_update, .subnet = here.applied}, here.shared_update);
    return true;
  }
  if (here.to_update.empty()) return false;
  const std::int64_t id = here.to_update.front();
  here.to_update.erase(here.to_update.begin());
  const StageWork& work = subnets_.at(id, rank);
  begin(
      rank,
      {.what = PlannedStart::update,
       .subnet = id,
       .slab = work.slab,
       .units = moves_ ? subnets_.units(id, rank) : std::vector<int>{}},
      prices_.update(outline_.stage_of_rank(rank), work.update, outline_.stage_of_rank(rank) + 1 == count_));
  return true;
}

bool CausalPlanner::begin_backward(int rank) {
  Rank& here = ranks_[rank];
  if (outline_.stage_of_rank(rank) > 0 && here.backwards.is_full()) return false;
  const std::int64_t first_of_lane = subnets_.oldest_of_lane(outline_.lane_of_rank(rank));
  const std::size_t count = here.to_backward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_backward[(first + k) % count];
    StageWork& work = subnets_.at(id, rank);
    if (work.slab < 0) {
      const bool is_oldest = id == first_of_lane;
      const StageWork& oldest = subnets_.at(first_of_lane, rank);
      if (!here.slabs.has_room(is_oldest, oldest.slab >= 0 && !oldest.updated ? 1 : 0)) {
        here.idle.because(WaitReason::room);
        continue;
      }
      work.slab = here.slabs.take();
    }
    const int micro_batch = work.backwards++;
    if (work.backwards == work.gradients) erase_sorted(here.to_backward, id);
    begin(rank,
          {.what = PlannedStart::backward,
           .micro_batch = micro_batch,
           .subnet = id,
           .slot = subnets_.slot(id, rank, micro_batch),
           .slab = work.slab,
           .sums = work.backward.sums},
          prices_.pass(outline_.stage_of_rank(rank), work.backward, micro_batch == 0));
    return true;
  }
  return false;
}

bool CausalPlanner::begin_forward(int rank) {
  Rank& here = ranks_[rank];
  const int stage = outline_.stage_of_rank(rank), lane = outline_.lane_of_rank(rank);
  const bool leaves = stage + 1 < count_;
  if (leaves && here.forwards.is_full()) return true;
  const std::int64_t oldest = subnets_.oldest_of_lane(lane);
  const auto has_slot = [&](int where, std::int64_t id) {
    const int held = oldest < subnets_.known() ? subnets_.at(oldest, where).slots_held() : 0;
    return ranks_[where].slots.has_room(id == oldest, held);
  };
  const auto has_slots = [&](std::int64_t id) {
    return (stage > 0 || has_slot(rank, id)) && (!leaves || has_slot(rank + 1, id));
  };
  const std::size_t count = here.to_forward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_forward[(first + k) % count];
    const bool may_read = has_version(id, rank), has_owner = may_read && !may_forward(id, rank);
    if (!may_read || has_owner || !has_slots(id)) {
      here.idle.because(has_owner ? WaitReason::owner : WaitReason::room);
      continue;
    }
    StageWork& work = subnets_.at(id, rank);
    const std::int64_t time = prices_.pass(stage, work.forward, false);
    if (rules_.holds_back && holds_back(rank, time)) return true;
    const int micro_batch = work.forwards++;
    if (work.forwards == work.arrived) erase_sorted(here.to_forward, id);
    const auto take = [&](int where) {
      subnets_.slot(id, where, micro_batch) = ranks_[where].slots.take();
      ++subnets_.at(id, where).slots;
    };
    if (stage == 0) take(rank);
    if (leaves) take(rank + 1);
    begin(rank,
          {.what = PlannedStart::forward,
           .micro_batch = micro_batch,
           .subnet = id,
           .slot = subnets_.slot(id, rank, micro_batch),
           .sums = work.forward.sums},
          time);
    return true;
  }
  if (stage == 0 && (!last_ || admitted_ < subnets_.known())) here.idle.because(WaitReason::room);
  // A subnet that is not known yet would be next.
  return moves_ || stage > 0 || last_ || subnets_.known() >= oldest + rules_.admission ||
         !has_slots(subnets_.known());
}

bool CausalPlanner::may_forward(std::int64_t id, int rank) const {
  switch (rules_.order) {
    case SubnetOrder::causal:
      return subnets_.at(id, rank).missing == 0;
    case SubnetOrder::bulk:
      return ranks_[rank].updated >= group_of(id) * count_;
    case SubnetOrder::free:
      return true;
  }
  return true;
}

bool CausalPlanner::holds_back(int rank, std::int64_t forward) const {
  if (outline_.stage_of_rank(rank) + 1 == count_) return false;
  const Rank& behind = ranks_[rank + 1];
  const std::int64_t until = now_ + forward / 4;
  if (behind.backwards.ends >= 0 && behind.backwards.ends <= until) return true;
  return behind.busy && behind.running.what == PlannedStart::backward &&
         behind.running.end + behind.backwards.time <= until;
}

void CausalPlanner::at(std::int64_t time, Event event) {
  event.time = time;
  event.order = events_made_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void CausalPlanner::begin(int rank, PlannedStart start, std::int64_t time) {
  Rank& here = ranks_[rank];
  here.busy = true;
  start.rank = rank;
  if (start.what <= PlannedStart::update) {
    start.first = subnets_.first_block(start.subnet, rank);
    start.last = subnets_.last_block(start.subnet, rank);
  }
  start.start = now_;
  start.end = now_ + (lasts_ ? lasts_(start, time) : time);
  start.waits = here.idle.begin(start.end);
  here.running = start;
  starts_.push_back(start);
  at(start.end, {.ending = Ending::pass, .rank = rank});
}

void CausalPlanner::end(const Event& event) {
  const int rank = event.rank;
  switch (event.ending) {
    case Ending::pass:
      return end_pass(rank);
    case Ending::forward_message:
      return arrive(ranks_[rank].forwards, rank, true);
    case Ending::backward_message:
      return arrive(ranks_[rank].backwards, rank, false);
    case Ending::sum:
      return end_sum(rank);
    case Ending::exchange:
      return end_exchange(rank, event.peer);
    case Ending::move:
      return end_move(rank, event.peer);
  }
}

void CausalPlanner::end_pass(int rank) {
  Rank& here = ranks_[rank];
  here.busy = false;
  here.dirty = true;
  const PlannedStart pass = here.running;
  switch (pass.what) {
    case PlannedStart::forward:
      return end_forward(rank, pass);
    case PlannedStart::backward:
      return end_backward(rank, pass);
    case PlannedStart::update:
      return end_update(rank, pass);
    case PlannedStart::shared_update:
      return end_shared_update(rank);
    case PlannedStart::message:
    case PlannedStart::sum:
    case PlannedStart::shared_sum:
    case PlannedStart::exchange:
    case PlannedStart::move:
      return;
  }
}

void CausalPlanner::end_forward(int rank, const PlannedStart& pass) {
  Rank& here = ranks_[rank];
  if (outline_.stage_of_rank(rank) + 1 < count_)
    return send(here.forwards, rank, true, pass.subnet, pass.micro_batch);
  ++subnets_.at(pass.subnet, rank).gradients;
  insert_sorted(here.to_backward, pass.subnet);
}

void CausalPlanner::end_backward(int rank, const PlannedStart& pass) {
  Rank& here = ranks_[rank];
  StageWork& work = subnets_.at(pass.subnet, rank);
  ++work.ended;
  here.slots.give_back(pass.slot);
  if (outline_.stage_of_rank(rank) > 0) {
    ranks_[rank - 1].dirty = true;
    send(here.backwards, rank, false, pass.subnet, pass.micro_batch);
  }
  if (work.ended < micro_batches_) return;
  if (!here.uses.empty()) pass_window(pass.subnet, rank);
  if (outline_.data == 1) return gradients_are_complete(pass.subnet, rank);
  put_sums(pass.subnet, rank);
}

/// The updates of a group wait for the backwards of all its subnets and follow in order of ids.
void CausalPlanner::gradients_are_complete(std::int64_t id, int rank) {
  Rank& here = ranks_[rank];
  here.dirty = true;
  if (rules_.order != SubnetOrder::bulk) return insert_sorted(here.to_update, id);
  insert_sorted(here.done, id);
  update_group(here);
}

void CausalPlanner::update_group(Rank& rank) {
  if (rank.done.empty()) return;
  const std::int64_t group = group_of(rank.done.front()) * count_, whole = group + count_;
  const std::int64_t first = std::max(group, begin_), end = last_ ? std::min(whole, subnets_.known()) : whole;
  if (static_cast<std::int64_t>(rank.done.size()) < end - first) return;
  rank.to_update.insert(rank.to_update.end(), rank.done.begin(), rank.done.end());
  rank.done.clear();
  rank.dirty = true;
}

void CausalPlanner::end_update(int rank, const PlannedStart& update) {
  Rank& here = ranks_[rank];
  ++here.updated;
  here.slabs.give_back(update.slab);
  const std::int64_t &oldest_of_lane = subnets_.oldest_of_lane(outline_.lane_of_rank(rank)),
                     before = oldest_of_lane, oldest = subnets_.oldest();
  subnets_.note_update(update.subnet, rank, [&](const UnitMove& move) {
    if (move.subnet < admitted_) queue_move(move);
  });
  if (subnets_.oldest() == oldest && oldest_of_lane == before) return;
  for (Rank& each : ranks_) each.dirty = true;  // rooms are kept for another
}

}  // namespace mindpipe
