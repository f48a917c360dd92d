#include "program/causal/causal_rule.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"
#include "core/give_way.h"
#include "core/random.h"
#include "program/causal/sorted_ids.h"
#include "program/causal/sum_of_use.h"

namespace mindpipe {
namespace {

/// What is said first counts.
void because(WaitReason& why, WaitReason reason) {
  if (why == WaitReason::input) why = reason;
}

}  // namespace

CausalRule::CausalRule(const Outline& outline, const PriceList& prices, SubnetRules rules, std::int64_t first)
    : outline_(outline),
      prices_(prices),
      rules_(std::move(rules)),
      subnets_(outline, prices, first),
      pieces_(outline, prices, subnets_),
      rooms_(outline, rules_, subnets_),
      turns_(outline, subnets_, rules_.order, first),
      windows_(outline, prices, subnets_, rules_.window, first),
      moves_(outline, prices, units_),
      messages_(outline, prices, subnets_),
      ranks_(outline.ranks()),
      admitted_(first) {
  MP_CHECK(outline.chunks == 1, "subnets on {} chunks a stage", outline.chunks);
  MP_CHECK(!outline.has_moves() || rules_.order == SubnetOrder::causal,
           "units move where subnets are in causal order");
  MP_CHECK(rules_.window == 0 || first % rules_.window == 0, "subnet {} begins no window of {}", first,
           rules_.window);
}

void CausalRule::add(std::span<const Subnet> more, bool last, Clock& clock) {
  pieces_.forget(subnets_.oldest());
  subnets_.forget();
  units_.clear();
  if (subnets_.is_closed()) turns_.begin_at(subnets_.known());
  for (const Subnet& subnet : more) {
    give_way(50);  // a cut of its own takes so long to find
    subnets_.add(subnet);
    pieces_.add(subnet);
  }
  subnets_.close(last);
  if (last) {
    turns_.close();
    windows_.close(clock);
  }
  for (int rank = 0; rank < outline_.ranks(); ++rank)
    if (last || outline_.stage_of_rank(rank) == 0) clock.touch(rank);
}

/// Lets subnets up to the admission window come to the first stage.
bool CausalRule::open(Clock& clock) {
  give_way();
  const std::int64_t end = std::min(subnets_.known(), subnets_.oldest() + rules_.admission);
  for (; admitted_ < end; ++admitted_) {
    const int rank = outline_.rank_of_subnet(admitted_, 0);
    subnets_.at(admitted_, rank).arrived = outline_.micro_batches;
    ranks_[rank].to_forward.push_back(admitted_);
    clock.touch(rank);
    for (const UnitMove& move : subnets_.users().ready_moves(admitted_))
      moves_.put(move, Owner::subnet, clock);
  }
  // Where units move, one may have to for a subnet that would be admitted now and is not known yet.
  return !outline_.has_moves() || subnets_.is_closed() ||
         subnets_.known() >= subnets_.oldest() + rules_.admission;
}

Source::Answer CausalRule::next(int rank, const Clock& clock, Task& task, WaitReason& why) {
  if (pieces_.take(rank, task)) return Answer::begins;
  if (drawn(2) == 1 && next_forward(rank, clock, task, why) == Answer::begins) return Answer::begins;
  if (next_update(rank, task) || next_backward(rank, task, why)) return Answer::begins;
  return next_forward(rank, clock, task, why);
}

/// One of so many: the first, unless the order is drawn.
std::size_t CausalRule::drawn(std::size_t count) {
  if (rules_.draws == 0 || count < 2) return 0;
  return RandomStream{.seed = rules_.draws, .purpose = purpose_of("order")}.word(drawn_++) % count;
}

/// A task on the blocks that a subnet runs on a rank.
Task CausalRule::of_subnet(TaskKind kind, std::int64_t id, int rank) const {
  return {.kind = kind,
          .rank = rank,
          .owner = {Owner::subnet, id},
          .chunk = outline_.stage_of_rank(rank),
          .first = subnets_.first_block(id, rank),
          .last = subnets_.last_block(id, rank)};
}

bool CausalRule::next_update(int rank, Task& task) {
  if (windows_.may_update(rank, task)) return true;
  const std::int64_t id = turns_.take(rank);
  if (id < 0) return false;
  const StageProgress& progress = subnets_.at(id, rank);
  const int stage = outline_.stage_of_rank(rank);
  task = of_subnet(TaskKind::update, id, rank);
  task.slab = progress.slab;
  if (outline_.has_moves())
    task.units = units_.emplace_back(subnets_.users().units(id, task.first, task.last));
  task.lasts = prices_.update(stage, progress.update, stage + 1 == outline_.stages);
  return true;
}

bool CausalRule::next_backward(int rank, Task& task, WaitReason& why) {
  Rank& here = ranks_[rank];
  const int stage = outline_.stage_of_rank(rank);
  if (!messages_.has_buffer(rank, false)) return false;
  const std::size_t count = here.to_backward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_backward[(first + k) % count];
    StageProgress& progress = subnets_.at(id, rank);
    if (progress.slab < 0 && !rooms_.take_slab(id, rank)) {
      because(why, WaitReason::room);
      continue;
    }
    const int micro_batch = progress.backwards++;
    if (progress.backwards == progress.gradients) erase_sorted(here.to_backward, id);
    task = of_subnet(TaskKind::backward, id, rank);
    task.micro_batch = micro_batch;
    task.clears = micro_batch == 0;
    task.fold = (micro_batch + 1) % outline_.micro_batches_of_shard() == 0;
    task.slot = subnets_.slot(id, rank, micro_batch);
    task.slab = progress.slab;
    task.sums = progress.backward.sums;
    task.take(prices_.pass(stage, progress.backward, task.clears));
    if (!pieces_.divides(task)) return true;
    progress.sums_left = progress.update.units;
    pieces_.begin(task);
    return pieces_.take(rank, task);
  }
  return false;
}

Source::Answer CausalRule::next_forward(int rank, const Clock& clock, Task& task, WaitReason& why) {
  Rank& here = ranks_[rank];
  const int stage = outline_.stage_of_rank(rank);
  if (!messages_.has_buffer(rank, true)) return Answer::waits;
  const std::size_t count = here.to_forward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_forward[(first + k) % count];
    const bool may_read = windows_.has_version(id, rank),
               has_owner = may_read && !turns_.may_forward(id, rank);
    if (!may_read || has_owner || !rooms_.has_slots(id, rank)) {
      because(why, has_owner ? WaitReason::owner : WaitReason::room);
      continue;
    }
    StageProgress& progress = subnets_.at(id, rank);
    const Price price = prices_.pass(stage, progress.forward, false);
    if (rules_.holds_back && holds_back(rank, price.lasts, clock)) return Answer::waits;
    const int micro_batch = progress.forwards++;
    if (progress.forwards == progress.arrived) erase_sorted(here.to_forward, id);
    rooms_.take_slots(id, rank, micro_batch);
    task = of_subnet(TaskKind::forward, id, rank);
    task.micro_batch = micro_batch;
    task.slot = subnets_.slot(id, rank, micro_batch);
    task.sums = progress.forward.sums;
    task.take(price);
    return Answer::begins;
  }
  const std::int64_t known = subnets_.known();
  if (stage == 0 && (!subnets_.is_closed() || admitted_ < known)) because(why, WaitReason::room);
  // A subnet that is not known yet would be next.
  const bool is_asked = !outline_.has_moves() && stage == 0 && !subnets_.is_closed() &&
                        known < subnets_.oldest_of_lane(outline_.lane_of_rank(rank)) + rules_.admission;
  return is_asked && rooms_.has_slots(known, rank) ? Answer::unknown : Answer::waits;
}

/// Whether a backward is known to come so soon that a forward would be in its way.
bool CausalRule::holds_back(int rank, std::int64_t forward, const Clock& clock) const {
  if (outline_.stage_of_rank(rank) + 1 == outline_.stages) return false;
  const std::int64_t until = clock.now() + forward / 4;
  const Clock::Way way{TaskKind::message, rank, false};
  if (clock.on_way(rank + 1, way) != nullptr && clock.arrives(rank + 1, way) <= until) return true;
  const Task* behind = clock.runs(rank + 1);
  return behind != nullptr && behind->kind == TaskKind::backward &&
         behind->end + pieces_.rest(rank + 1) + messages_.lasts(rank + 1, false) <= until;
}

void CausalRule::ended(const Task& task, Clock& clock) {
  if (task.owner.of == Owner::window) return windows_.end(task, clock);
  const std::int64_t id = task.owner.number;
  switch (task.kind) {
    case TaskKind::forward:
      if (task.chunk + 1 < outline_.stages) return messages_.send(task, true, clock);
      ++subnets_.at(id, task.rank).gradients;
      return insert_sorted(ranks_[task.rank].to_backward, id);
    case TaskKind::backward:
      return end_backward(task, clock);
    case TaskKind::update:
      return end_update(task, clock);
    case TaskKind::message:
      return arrive(task, clock);
    case TaskKind::sum:
      if (StageProgress& progress = subnets_.at(id, task.rank);
          --progress.sums_left == 0 && progress.ended == outline_.micro_batches)
        turns_.complete(id, task.rank, clock);
      return;
    case TaskKind::move:
      if (task.owner.of == Owner::subnet) {
        subnets_.at(id, task.peer).missing -= static_cast<int>(task.units.size());
        clock.touch(task.peer);
      }
      return moves_.end(task.rank, clock);
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::exchange:
    case TaskKind::gather:
    case TaskKind::scalars:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      break;
  }
  MP_CHECK(false, "subnet {} has a task of another kind", id);
}

void CausalRule::arrive(const Task& message, Clock& clock) {
  messages_.end(message);
  clock.touch(message.rank);
  clock.touch(message.peer);
  const std::int64_t id = message.owner.number;
  Rank& there = ranks_[message.peer];
  StageProgress& progress = subnets_.at(id, message.peer);
  ++(message.with_forward ? progress.arrived : progress.gradients);
  insert_sorted(message.with_forward ? there.to_forward : there.to_backward, id);
}

void CausalRule::end_backward(const Task& pass, Clock& clock) {
  const std::int64_t id = pass.owner.number;
  StageProgress& progress = subnets_.at(id, pass.rank);
  if (progress.sums_left > 0) sum(pass, clock);
  if (pass.goes_on) return;
  rooms_.give_slot_back(pass.rank, pass.slot);
  if (pass.chunk > 0) {
    clock.touch(pass.rank - 1);
    messages_.send(pass, false, clock);
  }
  if (++progress.ended < outline_.micro_batches) return;
  windows_.pass(id, pass.rank, clock);
  if (progress.sums_left == 0) turns_.complete(id, pass.rank, clock);
}

/// Sums over data the gradients that the last backward has completed, one unit after the other, the last
/// block's first.
void CausalRule::sum(const Task& pass, Clock& clock) {
  const std::int64_t id = pass.owner.number;
  for (int block = pass.last; block-- > pass.first;)
    for (int number = subnets_.users().most_units(); number-- > 0;)
      if (const int unit = subnets_.users().unit(id, block, number); unit >= 0)
        clock.put(sum_of_use(outline_, prices_, pass.rank, pass.owner, {unit, block}, pass.slab));
}

void CausalRule::end_update(const Task& update, Clock& clock) {
  turns_.note_update(update.rank);
  rooms_.give_slab_back(update.rank, update.slab);
  const std::int64_t &oldest_of_lane = subnets_.oldest_of_lane(outline_.lane_of_rank(update.rank)),
                     before = oldest_of_lane, oldest = subnets_.oldest();
  subnets_.note_update(update.owner.number, update.rank, [&](const UnitMove& move) {
    if (move.subnet < admitted_) moves_.put(move, Owner::subnet, clock);
  });
  if (subnets_.oldest() == oldest && oldest_of_lane == before) return;
  for (int rank = 0; rank < outline_.ranks(); ++rank) clock.touch(rank);  // rooms are kept for another
}

/// Lets all units that were used since the last drain go to all other ranks of their home.
bool CausalRule::at_rest(Clock& clock) {
  if (!outline_.has_moves() || !subnets_.is_closed() || subnets_.oldest() < subnets_.known()) return false;
  const std::vector<UnitMove> moves = subnets_.users().bring_home(subnets_.known());
  for (const UnitMove& move : moves) moves_.put(move, Owner::drain, clock);
  return !moves.empty();
}

/// What keeps a subnet from going on on a rank; empty: it has nothing to begin there.
std::string CausalRule::awaited_by(std::int64_t id, int rank) const {
  const StageProgress& progress = subnets_.at(id, rank);
  if (progress.backwards < progress.gradients) return "a gradient slab";
  if (progress.forwards == progress.arrived) return "";
  if (!windows_.has_version(id, rank))
    return fmt::format("the update of window {} of what all share", id / rules_.window - 2);
  if (!turns_.may_forward(id, rank))
    return progress.missing > 0 ? fmt::format("{} units, which older subnets have used", progress.missing)
                                : std::string("the update of an older group");
  return "a slot";
}

/// The oldest subnet waits for no other, and rooms are kept for it: no setting of a run leads here.
std::string CausalRule::standstill() const {
  std::int64_t id = subnets_.oldest();
  if (id == subnets_.known()) return "";
  std::string waits;
  for (; id < admitted_; ++id) {  // of a group that is updated together another one may be what stands
    for (int stage = outline_.stages; stage-- > 0;) {
      const int rank = outline_.rank_of_subnet(id, stage);
      if (const std::string awaited = awaited_by(id, rank); !awaited.empty())
        waits += fmt::format("{}for {} on rank {} (lane {}, stage {})", waits.empty() ? "" : ", and ",
                             awaited, rank, outline_.lane_of_rank(rank), stage);
    }
    if (!waits.empty()) break;
  }
  return fmt::format(
      "subnet {} has not ended, subnet {} waits {}, and nothing is under way that could bring it",
      subnets_.oldest(), id, waits.empty() ? "for what nobody sends" : waits);
}

}  // namespace mindpipe
