#include "program/causal_planner.h"

#include <algorithm>

#include "core/check.h"
#include "core/random.h"

namespace mindpipe {
namespace {

void insert_sorted(std::vector<std::int64_t>& ids, std::int64_t id) {
  const auto place = std::lower_bound(ids.begin(), ids.end(), id);
  if (place == ids.end() || *place != id) ids.insert(place, id);
}

void erase_sorted(std::vector<std::int64_t>& ids, std::int64_t id) {
  ids.erase(std::lower_bound(ids.begin(), ids.end(), id));
}

int room_count(const std::vector<int>& counts, int stage) { return counts.empty() ? 0 : counts[stage]; }

}  // namespace

CausalPlanner::Stage::Stage(const SubnetRules& rules, int stage, int micro_batches)
    : slots(room_count(rules.slots, stage), rules.keeps_slots ? micro_batches : 0),
      slabs(room_count(rules.slabs, stage), rules.keeps_slab ? 1 : 0) {}

CausalPlanner::CausalPlanner(const Outline& outline, const Network& network, SubnetRules rules,
                             std::int64_t first)
    : outline_(outline),
      rules_(std::move(rules)),
      count_(outline.stages),
      micro_batches_(outline.micro_batches),
      subnets_(outline, network.data, first),
      admitted_(first),
      begin_(first) {
  MP_CHECK(outline.chunks == 1, "subnets on {} chunks a stage", outline.chunks);
  MP_CHECK(rules_.window == 0 || first % rules_.window == 0, "subnet {} begins no window of {}", first,
           rules_.window);
  for (int stage = 0; stage < count_; ++stage) {
    stages_.emplace_back(rules_, stage, micro_batches_);
    stages_[stage].updated = first;
    stages_[stage].applied = rules_.window > 0 ? first / rules_.window : 0;
    const auto time = [&](int peer, int cut, bool with_forward) {
      const auto special = network.between.find({stage, peer});
      const Link& link = special == network.between.end() ? network.message : special->second;
      std::int64_t longest = 0;  // its payloads travel side by side
      for (const auto& [payload, bytes] : payloads_of(outline.cuts[cut], with_forward))
        if (bytes > 0) longest = std::max(longest, link.time(bytes));
      return longest;
    };
    if (stage + 1 < count_)
      stages_[stage].forwards.time = time(stage + 1, outline.first_block[stage + 1], true);
    if (stage > 0) stages_[stage].backwards.time = time(stage - 1, outline.first_block[stage], false);
  }
  if (rules_.window > 0) find_what_is_shared(network);
}

std::vector<PlannedStart> CausalPlanner::next(std::span<const Subnet> more, bool last) {
  subnets_.forget();
  starts_.clear();
  if (last_) begin_ = subnets_.known();
  for (const Subnet& subnet : more) subnets_.add(subnet);
  last_ = last;
  if (last) close();
  admit();
  stages_[0].dirty = true;
  for (;;) {
    for (int stage = 0; stage < count_; ++stage) {
      if (!stages_[stage].dirty) continue;
      if (!decide(stage)) return std::move(starts_);
      stages_[stage].dirty = false;
    }
    if (events_.empty()) break;
    now_ = events_.front().time;
    while (!events_.empty() && events_.front().time == now_) {
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      const Event event = events_.back();
      events_.pop_back();
      end(event);
    }
  }
  if (subnets_.oldest() < subnets_.known()) stands_still();
  return std::move(starts_);
}

void CausalPlanner::stands_still() const {
  const auto fewest = [](const std::vector<int>& counts) {
    return counts.empty() ? std::string("as many as it asks for")
                          : std::to_string(*std::min_element(counts.begin(), counts.end()));
  };
  fail(Exit::bad_configuration,
       "everything stands still: subnet {} can never end; a stage has at least {} slots and {} gradient "
       "slabs, "
       "{} subnets are admitted, each has {} micro-batches (take more of supernet.slots, or auto)",
       subnets_.oldest(), fewest(rules_.slots), fewest(rules_.slabs), rules_.admission, micro_batches_);
}

/// Lets subnets up to the admission window come to the first stage.
void CausalPlanner::admit() {
  const std::int64_t end = std::min(subnets_.known(), subnets_.oldest() + rules_.admission);
  for (; admitted_ < end; ++admitted_) {
    subnets_.at(admitted_, 0).arrived = micro_batches_;
    stages_[0].to_forward.push_back(admitted_);
    stages_[0].dirty = true;
  }
}

bool CausalPlanner::decide(int stage) {
  if (stages_[stage].busy) return true;
  stages_[stage].idle.look(now_);
  if (drawn(2) == 1) begin_forward(stage);
  if (stages_[stage].busy || begin_update(stage) || begin_backward(stage)) return true;
  return begin_forward(stage);
}

/// One of so many: the first, unless the order is drawn.
std::size_t CausalPlanner::drawn(std::size_t count) {
  if (rules_.draws == 0 || count < 2) return 0;
  return RandomStream{.seed = rules_.draws, .purpose = purpose_of("order")}.word(drawn_++) % count;
}

bool CausalPlanner::begin_update(int stage) {
  Stage& here = stages_[stage];
  if (here.applied < static_cast<std::int64_t>(here.arrived.size()) &&
      here.arrived[here.applied] == here.expected) {
    begin(stage, {.what = PlannedStart::shared_update, .subnet = here.applied}, here.shared_update);
    return true;
  }
  if (here.to_update.empty()) return false;
  const std::int64_t id = here.to_update.front();
  here.to_update.erase(here.to_update.begin());
  const StageWork& work = subnets_.at(id, stage);
  begin(stage, {.what = PlannedStart::update, .subnet = id, .slab = work.slab}, work.update);
  return true;
}

bool CausalPlanner::begin_backward(int stage) {
  Stage& here = stages_[stage];
  if (stage > 0 && here.backwards.is_full()) return false;
  const std::size_t count = here.to_backward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_backward[(first + k) % count];
    StageWork& work = subnets_.at(id, stage);
    if (work.slab < 0) {
      const bool is_oldest = id == subnets_.oldest();
      const StageWork& oldest = subnets_.at(subnets_.oldest(), stage);
      if (!here.slabs.has_room(is_oldest, oldest.slab >= 0 && !oldest.updated ? 1 : 0)) {
        here.idle.because(WaitReason::room);
        continue;
      }
      work.slab = here.slabs.take();
    }
    const int micro_batch = work.backwards++;
    if (work.backwards == work.gradients) erase_sorted(here.to_backward, id);
    begin(stage,
          {.what = PlannedStart::backward,
           .micro_batch = micro_batch,
           .subnet = id,
           .slot = subnets_.slot(id, stage, micro_batch),
           .slab = work.slab,
           .sums = work.backward_sums},
          work.backward);
    return true;
  }
  return false;
}

bool CausalPlanner::begin_forward(int stage) {
  Stage& here = stages_[stage];
  const bool leaves = stage + 1 < count_;
  if (leaves && here.forwards.is_full()) return true;
  const std::int64_t oldest = subnets_.oldest();
  const auto has_slot = [&](int where, std::int64_t id) {
    const int held = oldest < subnets_.known() ? subnets_.at(oldest, where).slots_held() : 0;
    return stages_[where].slots.has_room(id == oldest, held);
  };
  const auto has_slots = [&](std::int64_t id) {
    return (stage > 0 || has_slot(0, id)) && (!leaves || has_slot(stage + 1, id));
  };
  const std::size_t count = here.to_forward.size(), first = drawn(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::int64_t id = here.to_forward[(first + k) % count];
    const bool may_read = has_version(id, stage), has_owner = may_read && !may_forward(id, stage);
    if (!may_read || has_owner || !has_slots(id)) {
      here.idle.because(has_owner ? WaitReason::owner : WaitReason::room);
      continue;
    }
    StageWork& work = subnets_.at(id, stage);
    if (rules_.holds_back && holds_back(stage, work.forward)) return true;
    const int micro_batch = work.forwards++;
    if (work.forwards == work.arrived) erase_sorted(here.to_forward, id);
    const auto take = [&](int where) {
      subnets_.slot(id, where, micro_batch) = stages_[where].slots.take();
      ++subnets_.at(id, where).slots;
    };
    if (stage == 0) take(0);
    if (leaves) take(stage + 1);
    begin(stage,
          {.what = PlannedStart::forward,
           .micro_batch = micro_batch,
           .subnet = id,
           .slot = subnets_.slot(id, stage, micro_batch),
           .sums = work.forward_sums},
          work.forward);
    return true;
  }
  if (stage == 0 && (!last_ || admitted_ < subnets_.known())) here.idle.because(WaitReason::room);
  // A subnet that is not known yet would be next.
  return stage > 0 || last_ || subnets_.known() >= oldest + rules_.admission || !has_slots(subnets_.known());
}

bool CausalPlanner::may_forward(std::int64_t id, int stage) const {
  switch (rules_.order) {
    case SubnetOrder::causal:
      return subnets_.at(id, stage).missing == 0;
    case SubnetOrder::bulk:
      return stages_[stage].updated >= group_of(id) * count_;
    case SubnetOrder::free:
      return true;
  }
  return true;
}

bool CausalPlanner::holds_back(int stage, std::int64_t forward) const {
  if (stage + 1 == count_) return false;
  const Stage& behind = stages_[stage + 1];
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

void CausalPlanner::begin(int stage, PlannedStart start, std::int64_t time) {
  Stage& here = stages_[stage];
  here.busy = true;
  start.stage = stage;
  start.start = now_;
  start.end = now_ + (lasts_ ? lasts_(start, time) : time);
  start.waits = here.idle.begin(start.end);
  here.running = start;
  starts_.push_back(start);
  at(start.end, {.ending = Ending::pass, .stage = stage});
}

void CausalPlanner::end(const Event& event) {
  const int stage = event.stage;
  switch (event.ending) {
    case Ending::pass:
      return end_pass(stage);
    case Ending::forward_message:
      return arrive(stages_[stage].forwards, stage, true);
    case Ending::backward_message:
      return arrive(stages_[stage].backwards, stage, false);
    case Ending::sum:
      return gradients_are_complete(event.subnet, stage);
    case Ending::shared_sum:
      return exchange(event.subnet, stage);
    case Ending::exchange:
      return count_arrival(event.subnet, event.peer);
  }
}

void CausalPlanner::end_pass(int stage) {
  Stage& here = stages_[stage];
  here.busy = false;
  here.dirty = true;
  const PlannedStart pass = here.running;
  switch (pass.what) {
    case PlannedStart::forward:
      return end_forward(stage, pass);
    case PlannedStart::backward:
      return end_backward(stage, pass);
    case PlannedStart::update:
      return end_update(stage, pass);
    case PlannedStart::shared_update:
      ++here.applied;
      return;
    case PlannedStart::message:
    case PlannedStart::sum:
    case PlannedStart::shared_sum:
    case PlannedStart::exchange:
      return;
  }
}

void CausalPlanner::end_forward(int stage, const PlannedStart& pass) {
  Stage& here = stages_[stage];
  if (stage + 1 < count_) return send(here.forwards, stage, true, pass.subnet, pass.micro_batch);
  ++subnets_.at(pass.subnet, stage).gradients;
  insert_sorted(here.to_backward, pass.subnet);
}

void CausalPlanner::end_backward(int stage, const PlannedStart& pass) {
  Stage& here = stages_[stage];
  StageWork& work = subnets_.at(pass.subnet, stage);
  ++work.ended;
  here.slots.give_back(pass.slot);
  if (stage > 0) {
    stages_[stage - 1].dirty = true;
    send(here.backwards, stage, false, pass.subnet, pass.micro_batch);
  }
  if (work.ended < micro_batches_) return;
  if (!here.uses.empty()) pass_window(pass.subnet, stage);
  if (outline_.data == 1) return gradients_are_complete(pass.subnet, stage);
  std::int64_t start = now_;  // one unit after the other, the last block's first
  for (int block = outline_.first_block[stage + 1]; block-- > outline_.first_block[stage];)
    for (int number = subnets_.most_units(); number-- > 0;) {
      const int unit = subnets_.unit(pass.subnet, block, number);
      if (unit < 0) continue;
      const std::int64_t end = start + subnets_.sum_time(unit);
      starts_.push_back({.what = PlannedStart::sum,
                         .stage = stage,
                         .unit = unit,
                         .block = block,
                         .subnet = pass.subnet,
                         .slab = work.slab,
                         .start = start,
                         .end = end});
      start = end;
    }
  at(start, {.ending = Ending::sum, .stage = stage, .subnet = pass.subnet});
}

/// The updates of a group wait for the backwards of all its subnets and follow in order of ids.
void CausalPlanner::gradients_are_complete(std::int64_t id, int stage) {
  Stage& here = stages_[stage];
  here.dirty = true;
  if (rules_.order != SubnetOrder::bulk) return insert_sorted(here.to_update, id);
  insert_sorted(here.done, id);
  update_group(here);
}

void CausalPlanner::update_group(Stage& stage) {
  if (stage.done.empty()) return;
  const std::int64_t group = group_of(stage.done.front()) * count_, whole = group + count_;
  const std::int64_t first = std::max(group, begin_), end = last_ ? std::min(whole, subnets_.known()) : whole;
  if (static_cast<std::int64_t>(stage.done.size()) < end - first) return;
  stage.to_update.insert(stage.to_update.end(), stage.done.begin(), stage.done.end());
  stage.done.clear();
  stage.dirty = true;
}

void CausalPlanner::end_update(int stage, const PlannedStart& update) {
  Stage& here = stages_[stage];
  ++here.updated;
  here.slabs.give_back(update.slab);
  const std::int64_t oldest = subnets_.oldest();
  subnets_.note_update(update.subnet, stage);
  if (subnets_.oldest() == oldest) return;
  for (Stage& each : stages_) each.dirty = true;  // rooms are kept for another
  admit();
}

void CausalPlanner::send(Channel& channel, int stage, bool with_forward, std::int64_t id, int micro_batch) {
  channel.waiting.emplace_back(id, micro_batch);
  if (channel.ends < 0) start_message(channel, stage, with_forward);
}

void CausalPlanner::start_message(Channel& channel, int stage, bool with_forward) {
  const auto& [id, micro_batch] = channel.waiting.front();
  channel.ends = now_ + channel.time;
  starts_.push_back({.what = PlannedStart::message,
                     .with_forward = with_forward,
                     .stage = stage,
                     .micro_batch = micro_batch,
                     .subnet = id,
                     .slot = subnets_.slot(id, stage + (with_forward ? 1 : -1), micro_batch),
                     .start = now_,
                     .end = channel.ends});
  at(channel.ends,
     {.ending = with_forward ? Ending::forward_message : Ending::backward_message, .stage = stage});
}

void CausalPlanner::arrive(Channel& channel, int stage, bool with_forward) {
  const auto [id, micro_batch] = channel.waiting.front();
  channel.waiting.pop_front();
  channel.ends = -1;
  stages_[stage].dirty = true;
  const int peer = stage + (with_forward ? 1 : -1);
  Stage& there = stages_[peer];
  there.dirty = true;
  StageWork& work = subnets_.at(id, peer);
  ++(with_forward ? work.arrived : work.gradients);
  insert_sorted(with_forward ? there.to_forward : there.to_backward, id);
  if (!channel.waiting.empty()) start_message(channel, stage, with_forward);
}

}  // namespace mindpipe
