#include "program/stretch_check.h"

#include <algorithm>

namespace mindpipe {

StretchCheck::StretchCheck(const Outline& outline, const SubnetRules& rules, int rank, std::int64_t first)
    : outline_(outline), rules_(rules), rank_(rank), updated_(first), known_(first) {
  if (rules.window > 0) applied_ = first_window_ = first / rules.window;
  for (auto& direction : sends_)
    for (auto& buffer : direction) buffer.fill(-1);
  for (const int unit : outline.units_of_rank(rank))
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

std::vector<std::string> StretchCheck::check(const ListStretch& stretch, std::span<const Subnet> more,
                                             bool last) {
  for (const Subnet& subnet : more) {
    Work& work = work_[subnet.id];
    for (int block = outline_.first_block[rank_]; block < outline_.first_block[rank_ + 1]; ++block)
      outline_.for_candidates(subnet.choice, block, [&](int candidate) {
        for (const int unit : outline_.units_used[block][candidate])
          if (!outline_.units[unit].shared) {
            work.units.push_back(unit);
            users_[unit].push_back(subnet.id);
          }
      });
    known_ = subnet.id + 1;
  }
  stretch_ = &stretch;
  errors_.clear();
  for (index_ = 0; index_ < static_cast<int>(stretch.actions.size()); ++index_) see();
  begin_ += static_cast<std::int64_t>(stretch.actions.size());
  if (!last) return std::move(errors_);
  for (const auto& [id, work] : work_)
    errors_.push_back(fmt::format("rank {}: subnet {} is not updated at a cut", rank_, id));
  for (const auto& [window, open] : windows_)
    errors_.push_back(fmt::format("rank {}: window {} is not applied at a cut", rank_, window));
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

bool StretchCheck::crosses(int payload, bool with_forward) const {
  const int cut = outline_.first_block[with_forward ? rank_ : rank_ + 1];
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
  if (rules_.order == SubnetOrder::causal) {
    for (const int unit : work.units)
      if (first_user(unit) != action.subnet)
        wrong("subnet {} has yet to update unit {}, which both use", first_user(unit), unit);
  } else if (rules_.order == SubnetOrder::bulk &&
             updated_ < action.subnet / outline_.stages * outline_.stages) {
    wrong("the group before has yet to be updated");
  }
  if (shares_) check_shared();
  Slot& here = slot(action.tape);
  if (rank_ == 0 && here.is_open) wrong("slot {} is that of subnet {}", action.tape, here.subnet);
  if (rank_ == 0) here = {.subnet = action.subnet, .micro_batch = action.micro_batch, .is_open = true};
  if (here.subnet != action.subnet || here.micro_batch != action.micro_batch)
    wrong("slot {} holds another micro-batch", action.tape);
  for (int payload = 0; rank_ > 0 && payload < 2; ++payload)
    if (crosses(payload, true) && (here.received[payload] < 0 || !waits_for(here.received[payload])))
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
  for (int payload = 0; rank_ + 1 < outline_.stages && payload < 2; ++payload)
    if (crosses(payload, false) && (here.gradient[payload] < 0 || !waits_for(here.gradient[payload])))
      wrong("does not wait for what it reads");
  if (work.backwards == 1) {
    work.slab = action.slab;
    const auto [holder, free] = slabs_.try_emplace(action.slab, action.subnet);
    if (!free) wrong("slab {} holds gradients of subnet {}", action.slab, holder->second);
  } else if (work.slab != action.slab) {
    wrong("its gradients are in slab {}", work.slab);
  }
  here.backward = work.last_backward = last_backward_ = begin_ + index_;
  here.is_open = false;
  if (shares_ && work.backwards == outline_.micro_batches) ++windows_[action.subnet / rules_.window].passed;
  leaves(false);
}

/// A pass whose result goes to a neighbour writes a buffer of a ring, once nothing is sent from it any more.
void StretchCheck::leaves(bool with_forward) {
  const Action& action = stretch_->actions[index_];
  if (with_forward ? rank_ + 1 == outline_.stages : rank_ == 0) return;
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

void StretchCheck::update() {
  const Action& action = stretch_->actions[index_];
  Work& work = work_[action.subnet];
  if (work.backwards < outline_.micro_batches) wrong("comes before its last backward");
  if (action.slab != work.slab) wrong("its gradients are in slab {}", work.slab);
  for (const int unit : work.units) {
    if (rules_.order == SubnetOrder::causal && first_user(unit) != action.subnet)
      wrong("subnet {} has yet to update unit {}", first_user(unit), unit);
    std::erase(users_[unit], action.subnet);
    if (outline_.data == 1) continue;
    const auto sum = work.sums.find(unit);
    if (sum == work.sums.end() || !waits_for(sum->second))
      wrong("does not wait for the sum of unit {}", unit);
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
  window.exchanged.push_back(begin_ + index_);
  const bool is_sum = action.kind == ActionKind::reduce;
  if (is_sum || sends(action)) {
    const bool of_data = !is_sum && outline_.data > 1;
    const auto sum = window.sums.find(action.unit);
    const std::int64_t made = !of_data ? last_backward_ : sum == window.sums.end() ? -1 : sum->second;
    if (made < 0 || !waits_for(made)) wrong("does not wait for what its subnets add");
    if (is_sum) window.sums[action.unit] = begin_ + index_;
  } else if (const std::int64_t before = applied_at_[action.subnet % 2];
             action.subnet >= first_window_ + 2 && (applied_ < action.subnet - 1 || !waits_for(before))) {
    wrong("arrives where window {} may still be read", action.subnet - 2);
  }
}

void StretchCheck::shared_update() {
  const Action& action = stretch_->actions[index_];
  Window& window = windows_[action.subnet];
  const std::int64_t first = action.subnet * rules_.window;
  if (window.passed < std::min(rules_.window, known_ - first))
    wrong("{} of its subnets have passed", window.passed);
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
