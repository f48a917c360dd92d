#include "program/check/stretch_check.h"

#include <algorithm>

#include "core/give_way.h"

namespace mindpipe {

StretchCheck::StretchCheck(const Outline& outline, const SubnetRules& rules, int rank, std::int64_t first)
    : outline_(outline),
      own_cuts_(outline),
      rules_(rules),
      rank_(rank),
      stage_(outline.stage_of_rank(rank)),
      lane_(outline.lane_of_rank(rank)),
      moves_(outline.has_moves()),
      held_(outline.units.size()),
      first_ticket_(first),
      updated_(first),
      known_(first) {
  if (rules.window > 0) applied_ = first_window_ = first / rules.window;
  forget_mirrors();
  for (auto& direction : sends_)
    for (auto& buffer : direction) buffer.fill(-1);
  for (const int unit : outline.units_of_rank(stage_))
    if (outline.units[unit].shared && rules.window > 0) shares_ = true;
}

template <class... Parts>
void StretchCheck::wrong(fmt::format_string<Parts...> sentence, Parts&&... parts) {
  errors_.push_back(fmt::format("rank {}, action {} ({}): {}", rank_, begin_ + index_,
                                to_string(stretch_->actions[index_]),
                                fmt::format(sentence, std::forward<Parts>(parts)...)));
}

bool StretchCheck::waits_for(std::int64_t earlier) const {
  const std::vector<int>& after = stretch_->actions[index_].after;
  return std::find(after.begin(), after.end(), earlier - begin_) != after.end();
}

StretchCheck::Slot& StretchCheck::slot(int number) {
  if (number >= static_cast<int>(slots_.size())) slots_.resize(number + 1);
  return slots_[number];
}

/// Behind a cut, and at the beginning, units are at home.
void StretchCheck::forget_mirrors() {
  const std::vector<int> home = outline_.units_of_rank(stage_);
  for (int unit = 0; unit < static_cast<int>(held_.size()); ++unit)
    if (!std::binary_search(home.begin(), home.end(), unit)) held_[unit].version = gone;
}

/// Notes which units a subnet uses, and here among them those of its blocks on this rank.
void StretchCheck::know(const Subnet& subnet) {
  const std::vector<int>& cut = own_cuts_.of(subnet.choice);
  const bool is_here = subnet.id % outline_.lanes == lane_;
  Work* work = is_here ? &work_[subnet.id] : nullptr;
  if (is_here) {
    work->first = cut[stage_];
    work->last = cut[stage_ + 1];
  }
  std::vector<Ticket>& all = tickets_.emplace_back();
  const int first = moves_ ? 0 : cut[stage_], last = moves_ ? outline_.all_blocks() : cut[stage_ + 1];
  for (int block = first; block < last; ++block)
    outline_.for_candidates(subnet.choice, block, [&](int candidate) {
      for (const int unit : outline_.units_used[block][candidate]) {
        if (outline_.units[unit].shared) continue;
        const Ticket ticket{unit, held_[unit].users++};
        if (moves_) all.push_back(ticket);
        if (is_here && block >= work->first && block < work->last) work->units.push_back(ticket);
      }
    });
  known_ = subnet.id + 1;
}

/// The version of a unit that a subnet reads, which is on its way to it; gone: it reads none.
std::int64_t StretchCheck::version_for(std::int64_t subnet, int unit) const {
  for (const Ticket& ticket : tickets_[subnet - first_ticket_])
    if (ticket.unit == unit) return ticket.version;
  return gone;
}

std::vector<std::string> StretchCheck::check(const ListStretch& stretch, std::span<const Subnet> more,
                                             bool last, std::int64_t oldest) {
  for (; first_ticket_ < oldest && !tickets_.empty(); ++first_ticket_) tickets_.pop_front();
  for (const Subnet& subnet : more) know(subnet);
  stretch_ = &stretch;
  errors_.clear();
  for (index_ = 0; index_ < static_cast<int>(stretch.actions.size()); ++index_) {
    give_way();
    see();
  }
  begin_ += static_cast<std::int64_t>(stretch.actions.size());
  if (!last) return std::move(errors_);
  for (const auto& [id, work] : work_)
    errors_.push_back(fmt::format("rank {}: subnet {} is not updated at a cut", rank_, id));
  for (const auto& [window, open] : windows_)
    errors_.push_back(fmt::format("rank {}: window {} is not applied at a cut", rank_, window));
  for (const int unit : outline_.units_of_rank(stage_))
    if (moves_ && !outline_.units[unit].shared && held_[unit].version != held_[unit].users)
      errors_.push_back(fmt::format("rank {}: unit {} is not at home at a cut", rank_, unit));
  if (moves_) forget_mirrors();
  return std::move(errors_);
}

void StretchCheck::see() {
  const Action& action = stretch_->actions[index_];
  for (const int earlier : action.after)
    if (earlier >= index_ || begin_ + earlier < 0) return wrong("waits for what is no earlier action");
  if (is_communication(action)) {
    if (action.ticket <= newest_ticket_) wrong("ticket {} comes after {}", action.ticket, newest_ticket_);
    newest_ticket_ = action.ticket;
  }
  if (names_unit(action) && outline_.units[action.unit].shared) {
    if (action.kind == ActionKind::update) return shared_update();
    return shared_exchange();
  }
  if (is_move(action)) return action.chunk >= 0 ? move() : move_home();
  // What a subnet's last backward has left for a neighbour may leave after the update.
  if (!sends(action) && work_.count(action.subnet) == 0)
    return wrong("its subnet has ended, or is not known");
  const bool has_slot = is_pass(action) || (action.kind == ActionKind::receive && crosses_cut(action));
  if (has_slot && action.tape < 0) return wrong("names no slot");
  switch (action.kind) {
    case ActionKind::forward:
      return forward();
    case ActionKind::backward:
      return backward();
    case ActionKind::send:
      return send();
    case ActionKind::receive:
      return receive();
    case ActionKind::reduce:
      return reduce();
    case ActionKind::update:
      return update();
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::gather:
    case ActionKind::sum_scalar:
      return wrong("has no place in a supernet's program");
  }
}

bool StretchCheck::crosses(int cut, int payload, bool with_forward) const {
  return payloads_of(outline_.cuts[cut], with_forward)[payload].second > 0;
}

void StretchCheck::check_shared() {
  const Action& action = stretch_->actions[index_];
  const std::int64_t window = action.subnet / rules_.window;
  // Versions lie in two copies: that of two windows before is there until this one has passed.
  if (applied_ + 1 < window || applied_ > window)
    wrong("reads what all share in the version of window {}, not {}", applied_ - 1, window - 2);
}

void StretchCheck::forward() {
  const Action& action = stretch_->actions[index_];
  Work& work = work_[action.subnet];
  if (action.micro_batch != work.forwards++) wrong("micro-batch {} is next", work.forwards - 1);
  if (action.first != work.first || action.last != work.last)
    wrong("runs other blocks than its subnet's cut says");
  if (rules_.order == SubnetOrder::causal) {
    require_versions(work);
    for (const std::int64_t arrival : work.moves)
      if (action.micro_batch == 0 && !waits_for(arrival))
        wrong("does not wait for units (action {})", arrival);
  } else if (rules_.order == SubnetOrder::bulk &&
             updated_ < action.subnet / outline_.stages * outline_.stages) {
    wrong("the group before has yet to be updated");
  }
  if (shares_) check_shared();
  Slot& here = slot(action.tape);
  if (stage_ == 0 && here.is_open) wrong("slot {} is that of subnet {}", action.tape, here.subnet);
  if (stage_ == 0) here = {.subnet = action.subnet, .micro_batch = action.micro_batch, .is_open = true};
  if (here.subnet != action.subnet || here.micro_batch != action.micro_batch)
    wrong("slot {} holds another micro-batch", action.tape);
  for (int payload = 0; stage_ > 0 && payload < 2; ++payload)
    if (crosses(action.first, payload, true) &&
        (here.received[payload] < 0 || !waits_for(here.received[payload])))
      wrong("does not wait for what it reads");
  here.forward = begin_ + index_;
  leaves(true);
}

void StretchCheck::backward() {
  const Action& action = stretch_->actions[index_];
  Work& work = work_[action.subnet];
  if (action.micro_batch != work.backwards++) wrong("micro-batch {} is next", work.backwards - 1);
  if (action.clears != (action.micro_batch == 0)) wrong("gradients are zeroed by the first backward");
  if (shares_) check_shared();
  Slot& here = slot(action.tape);
  if (!here.is_open || here.subnet != action.subnet || here.micro_batch != action.micro_batch)
    wrong("slot {} holds another micro-batch", action.tape);
  if (here.forward < 0) wrong("runs before its forward");
  for (int payload = 0; stage_ + 1 < outline_.stages && payload < 2; ++payload)
    if (crosses(action.last, payload, false) &&
        (here.gradient[payload] < 0 || !waits_for(here.gradient[payload])))
      wrong("does not wait for what it reads");
  if (work.backwards == 1) {
    work.slab = action.slab;
    const auto [holder, free] = slabs_.try_emplace(action.slab, action.subnet);
    if (!free) wrong("slab {} holds gradients of subnet {}", action.slab, holder->second);
  } else if (work.slab != action.slab) {
    wrong("its gradients are in slab {}", work.slab);
  }
  here.backward = work.last_backward = begin_ + index_;
  here.is_open = false;
  if (shares_) {
    Window& window = windows_[action.subnet / rules_.window];
    window.last_backward = begin_ + index_;
    if (work.backwards == outline_.micro_batches) ++window.passed;
  }
  leaves(false);
}

/// A pass whose result goes to a neighbour writes a buffer of a ring, once nothing is sent from it any more.
void StretchCheck::leaves(bool with_forward) {
  const Action& action = stretch_->actions[index_];
  if (with_forward ? stage_ + 1 == outline_.stages : stage_ == 0) return;
  producers_[with_forward].push_back(begin_ + index_);
  const int buffer = action.to_buffer - (with_forward ? 0 : 2);
  if (buffer != 0 && buffer != 1) return wrong("writes no buffer of its ring");
  for (std::int64_t& send : sends_[with_forward][buffer]) {
    if (send >= 0 && !waits_for(send)) wrong("writes buffer {} while it may be read", action.to_buffer);
    send = -1;
  }
}

void StretchCheck::send() {
  const Action& action = stretch_->actions[index_];
  const bool with_forward = travels_forward(action.payload);
  auto& producers = producers_[with_forward];
  while (!producers.empty() && !waits_for(producers.front())) producers.pop_front();
  if (producers.empty()) return wrong("does not wait for what it sends");
  const auto payloads = payloads_of(outline_.cuts[action.first], with_forward);
  const int buffer = action.from_buffer - (with_forward ? 0 : 2);
  if (buffer != 0 && buffer != 1) return wrong("reads no buffer of its ring");
  sends_[with_forward][buffer][payloads[0].first == action.payload ? 0 : 1] = begin_ + index_;
}

void StretchCheck::receive() {
  const Action& action = stretch_->actions[index_];
  const bool with_forward = travels_forward(action.payload);
  const int payload =
      payloads_of(outline_.cuts[action.first], with_forward)[0].first == action.payload ? 0 : 1;
  Slot& there = slot(action.tape);
  const bool is_same = there.subnet == action.subnet && there.micro_batch == action.micro_batch;
  if (!with_forward) {
    if (!is_same || !there.is_open) return wrong("slot {} is that of another micro-batch", action.tape);
    if (there.forward < 0 || !waits_for(there.forward)) wrong("may arrive before its forward has ended");
    there.gradient[payload] = begin_ + index_;
    return;
  }
  if (there.is_open && !is_same)
    return wrong("slot {} is that of micro-batch {} of subnet {}", action.tape, there.micro_batch,
                 there.subnet);
  if (!there.is_open) {
    const std::int64_t reader = there.backward;
    if (reader >= 0 && !waits_for(reader)) wrong("arrives in slot {} while it may be read", action.tape);
    there = {.subnet = action.subnet, .micro_batch = action.micro_batch, .backward = reader, .is_open = true};
  } else if (there.backward >= 0 && !waits_for(there.backward)) {
    wrong("arrives in slot {} while it may be read", action.tape);
  }
  there.received[payload] = begin_ + index_;
}

void StretchCheck::reduce() {
  const Action& action = stretch_->actions[index_];
  Work& work = work_[action.subnet];
  if (work.backwards < outline_.micro_batches || !waits_for(work.last_backward))
    wrong("does not wait for the last backward");
  if (action.slab != work.slab) wrong("its gradients are in slab {}", work.slab);
  if (action.part + 1 == action.parts) work.sums[action.unit] = begin_ + index_;
}

/// All older users of a subnet's units have updated them, and their states are here.
void StretchCheck::require_versions(const Work& work) {
  for (const Ticket& ticket : work.units)
    if (const std::int64_t found = held_[ticket.unit].version; found == gone)
      wrong("unit {}, which it uses, is on another rank", ticket.unit);
    else if (found != ticket.version)
      wrong("finds version {} of unit {}, which {} older subnets use", found, ticket.unit, ticket.version);
}

/// The parts of a move follow each other, and the next move of a channel its last.
void StretchCheck::check_parts() {
  const Action& action = stretch_->actions[index_];
  int& next = parts_[queue_of(action)];
  if (action.part != next)
    wrong("is part {} of {}, where part {} is next", action.part + 1, action.parts, next + 1);
  next = (action.part + 1) % action.parts;
}

/// A move takes units in the version that their reader is due, once they have it, and brings them where
/// nobody is at the older state any more.
void StretchCheck::move() {
  const Action& action = stretch_->actions[index_];
  const bool is_last = action.part + 1 == action.parts;
  check_parts();
  for (const int unit : action.units) {
    Holding& held = held_[unit];
    const std::int64_t due = version_for(action.subnet, unit);
    if (due == gone) wrong("its subnet uses no unit {}", unit);
    if (held.touched >= 0 && !waits_for(held.touched))
      wrong("does not wait for what was last done to unit {}", unit);
    if (sends(action) && held.version != due)
      wrong("takes version {} of unit {}, not {}", held.version, unit, due);
    if (!sends(action) && held.version == due) wrong("brings unit {}, which is here", unit);
    if (!is_last) continue;
    held.version = sends(action) ? gone : due;
    if (sends(action)) held.touched = begin_ + index_;
  }
  if (!is_last || sends(action)) return;
  const auto reader = work_.find(action.subnet);
  if (reader == work_.end()) return wrong("its subnet does not run here");
  reader->second.moves.push_back(begin_ + index_);
}

/// Before a cut the newest states go home to all lanes, and stay where they are.
void StretchCheck::move_home() {
  const Action& action = stretch_->actions[index_];
  check_parts();
  for (const int unit : action.units) {
    Holding& held = held_[unit];
    if (held.touched >= 0 && !waits_for(held.touched))
      wrong("does not wait for what was last done to unit {}", unit);
    if (sends(action) && held.version != held.users)
      wrong("takes version {} of unit {} home, not {}", held.version, unit, held.users);
    if (action.part + 1 == action.parts && !sends(action)) held.version = held.users;
  }
}

/// The subnets of a window that run in this lane, as far as they are known.
std::int64_t StretchCheck::size_of_window(std::int64_t window) const {
  const auto below = [&](std::int64_t end) { return (end + outline_.lanes - 1 - lane_) / outline_.lanes; };
  const std::int64_t first = window * rules_.window, end = std::min(first + rules_.window, known_);
  return below(end) - below(first);
}

void StretchCheck::update() {
  const Action& action = stretch_->actions[index_];
  Work& work = work_[action.subnet];
  if (work.backwards < outline_.micro_batches) wrong("comes before its last backward");
  if (action.slab != work.slab) wrong("its gradients are in slab {}", work.slab);
  if (rules_.order == SubnetOrder::causal) require_versions(work);
  for (const Ticket& ticket : work.units) {
    Holding& held = held_[ticket.unit];
    held.version = ticket.version + 1;
    held.touched = begin_ + index_;
    if (outline_.data == 1) continue;
    const auto sum = work.sums.find(ticket.unit);
    if (sum == work.sums.end() || !waits_for(sum->second))
      wrong("does not wait for the sum of unit {}", ticket.unit);
  }
  slabs_.erase(work.slab);
  ++updated_;
  work_.erase(action.subnet);
}

/// A window's sum follows its last backward, over data first; what arrives lies where that of two windows
/// before did.
void StretchCheck::shared_exchange() {
  const Action& action = stretch_->actions[index_];
  Window& window = windows_[action.subnet];
  if (action.part + 1 == action.parts) window.exchanged.push_back(begin_ + index_);  // others end before
  const bool is_sum = action.kind == ActionKind::reduce;
  if (is_sum || sends(action)) {
    const bool of_data = !is_sum && outline_.data > 1;
    const auto sum = window.sums.find(action.unit);
    const std::int64_t made = !of_data ? window.last_backward : sum == window.sums.end() ? -1 : sum->second;
    if (made < 0 || window.passed < size_of_window(action.subnet) || !waits_for(made))
      wrong("does not wait for what its subnets add");
    if (is_sum) window.sums[action.unit] = begin_ + index_;
  } else if (const std::int64_t before = applied_at_[action.subnet % 2];
             action.subnet >= first_window_ + 2 && (applied_ < action.subnet - 1 || !waits_for(before))) {
    wrong("arrives where window {} may still be read", action.subnet - 2);
  }
}

void StretchCheck::shared_update() {
  const Action& action = stretch_->actions[index_];
  Window& window = windows_[action.subnet];
  if (window.passed < size_of_window(action.subnet)) wrong("{} of its subnets have passed", window.passed);
  for (const std::int64_t earlier : window.exchanged)
    if (!waits_for(earlier)) wrong("does not wait for what others add (action {})", earlier);
  const auto next =
      index_ + 1 < static_cast<int>(stretch_->actions.size()) ? &stretch_->actions[index_ + 1] : nullptr;
  const bool goes_on = next != nullptr && next->kind == ActionKind::update && names_unit(*next) &&
                       next->subnet == action.subnet;
  if (goes_on) return;
  if (action.subnet != applied_) wrong("window {} is next", applied_);
  applied_ = action.subnet + 1;
  applied_at_[action.subnet % 2] = begin_ + index_;
  windows_.erase(action.subnet);
}

}  // namespace mindpipe
