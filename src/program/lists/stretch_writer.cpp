#include "program/lists/stretch_writer.h"

#include <algorithm>

#include "core/check.h"
#include "core/give_way.h"

namespace mindpipe {

StretchWriter::StretchWriter(const Outline& outline, std::int64_t window, int rank)
    : outline_(outline),
      window_(window),
      rank_(rank),
      comes_first_(outline.stage_of_rank(rank) == 0),
      comes_last_(outline.stage_of_rank(rank) + 1 == outline.stages) {
  for (const int unit : outline.units_of_rank(outline.stage_of_rank(rank)))
    if (window > 0 && outline.units[unit].shared) shared_.push_back(unit);
}

ListStretch StretchWriter::write(const std::vector<Task>& starts) {
  begin_ = place();
  stretch_ = {};
  for (const Task& start : starts) {
    give_way();
    const bool of_window = start.owner.of == Owner::window;
    switch (start.kind) {
      case TaskKind::forward:
        pass(ActionKind::forward, start);
        break;
      case TaskKind::backward:
        pass(ActionKind::backward, start);
        break;
      case TaskKind::update:
        of_window ? shared_update(start) : update(start);
        break;
      case TaskKind::message:
        message(start);
        break;
      case TaskKind::sum:
        sum(start, of_window);
        break;
      case TaskKind::exchange:
        exchange(start);
        break;
      case TaskKind::move:
        move(start);
        break;
      default:
        MP_CHECK(false, "a list of subnets has no task of kind {}", static_cast<int>(start.kind));
    }
  }
  return stretch_;
}

StretchWriter::Slot& StretchWriter::slot(int number) {
  if (number >= static_cast<int>(slots_.size())) slots_.resize(number + 1);
  return slots_[number];
}

std::int64_t StretchWriter::add(Action action, std::int64_t time) {
  std::sort(action.after.begin(), action.after.end());
  action.after.erase(std::unique(action.after.begin(), action.after.end()), action.after.end());
  const std::int64_t at = place();
  stretch_.actions.push_back(std::move(action));
  stretch_.times.push_back(time);
  return at;
}

void StretchWriter::wait_for(Action& action, std::int64_t earlier) const {
  if (earlier >= 0) action.after.push_back(static_cast<int>(earlier - begin_));
}

void StretchWriter::wait_for(Action& action, const Places& earlier) const {
  for (const std::int64_t one : earlier) wait_for(action, one);
}

Action StretchWriter::of_blocks(ActionKind kind, const Task& start) const {
  Action action = action_of(kind);
  action.subnet = start.owner.number;
  action.chunk = outline_.stage_of_rank(start.rank);
  action.first = start.first;
  action.last = start.last;
  action.slab = start.slab;
  action.waits = start.waits;
  return action;
}

void StretchWriter::pass(ActionKind kind, const Task& start) {
  if (start.rank != rank_) return;
  Action action = of_blocks(kind, start);
  const bool forward = kind == ActionKind::forward;
  action.micro_batch = start.micro_batch;
  action.shard = start.micro_batch / outline_.micro_batches_of_shard();
  action.tape = start.slot;
  action.clears = start.clears;
  action.fold = start.fold;
  action.sums = start.sums.calls;
  action.bytes = start.sums.bytes;
  Slot& here = slot(start.slot);
  wait_for(action, forward ? here.received : here.gradient);
  if (forward && start.micro_batch == 0) wait_for_moves(action);
  const bool leaves = !(forward ? comes_last_ : comes_first_);
  Ring& ring = forward ? forwards_ : backwards_;
  if (leaves) {
    const std::int64_t buffer = ring.passes++ % 2;
    action.to_buffer = static_cast<int>(buffer) + (forward ? 0 : 2);
    wait_for(action, ring.sends[buffer]);
  }
  const std::int64_t at = add(std::move(action), start.end - start.start);
  if (leaves) ring.producers.push_back(at);
  (forward ? here.forward : here.backward) = at;
  if (forward) return;
  slabs_[start.slab].backward = at;
  if (!shared_.empty()) windows_[start.owner.number / window_].backward = at;
}

/// The first pass of a subnet reads its units here.
void StretchWriter::wait_for_moves(Action& action) {
  const auto moved = moved_.find(action.subnet);
  if (moved == moved_.end()) return;
  for (const std::int64_t last_part : moved->second) wait_for(action, last_part);
  moved_.erase(moved);
}

void StretchWriter::message(const Task& start) {
  const int peer = start.peer, cut = start.first;
  const auto payloads = payloads_of(outline_.cuts[cut], start.with_forward);
  for (int k = 0; k < static_cast<int>(payloads.size()); ++k) {
    const auto& [payload, bytes] = payloads[k];
    if (bytes == 0) continue;
    const std::int64_t ticket = tickets_++;
    if (rank_ != start.rank && rank_ != peer) continue;
    Action action = action_of(rank_ == peer ? ActionKind::receive : ActionKind::send);
    action.ticket = ticket;
    action.subnet = start.owner.number;
    action.chunk = outline_.stage_of_rank(rank_);
    action.micro_batch = start.micro_batch;
    action.shard = start.micro_batch / outline_.micro_batches_of_shard();
    action.first = action.last = cut;
    action.peer = rank_ == peer ? start.rank : peer;
    action.payload = payload;
    action.bytes = bytes;
    const std::int64_t time = start.end - start.start;
    if (rank_ == peer) {
      action.tape = start.slot;
      receive(std::move(action), start.with_forward, k, time);
    } else {
      send(std::move(action), start.with_forward, k, time);
    }
  }
  Ring& ring = start.with_forward ? forwards_ : backwards_;
  if (rank_ == start.rank) {
    ring.producers.pop_front();
    ++ring.messages;
  }
}

void StretchWriter::send(Action message, bool with_forward, int payload, std::int64_t time) {
  Ring& ring = with_forward ? forwards_ : backwards_;
  const std::int64_t buffer = ring.messages % 2;
  message.from_buffer = static_cast<int>(buffer) + (with_forward ? 0 : 2);
  wait_for(message, ring.producers.front());
  ring.sends[buffer][payload] = add(std::move(message), time);
}

/// What arrives with a forward lies where the slot's micro-batch before it was; a gradient follows the
/// forward of its own.
void StretchWriter::receive(Action message, bool with_forward, int payload, std::int64_t time) {
  Slot& there = slot(message.tape);
  wait_for(message, with_forward ? there.backward : there.forward);
  Places& places = with_forward ? there.received : there.gradient;
  places[payload] = add(std::move(message), time);
}

/// Whether a transfer begins or ends here. Its tickets are counted, if it does not.
bool StretchWriter::is_end(const Task& start, const Transfer& transfer) {
  const bool is_here = start.rank == rank_ || start.peer == rank_;
  if (!is_here) tickets_ += transfer.parts;
  return is_here;
}

/// Writes a transfer as actions of their own, each with its ticket on every rank; gives the place of the
/// last.
std::int64_t StretchWriter::in_parts(Action action, const Transfer& transfer, std::int64_t time) {
  action.parts = transfer.parts;
  std::int64_t last = -1;
  for (action.part = 0; action.part < transfer.parts; ++action.part) {
    action.bytes = transfer.of_part(action.part, transfer.bytes);
    action.ticket = tickets_++;
    last = add(action, transfer.of_part(action.part, time));
  }
  return last;
}

/// The sum over data of a unit's gradient follows the last backward that adds to it.
void StretchWriter::sum(const Task& start, bool of_window) {
  const Transfer transfer = sum_over_data(outline_, start.unit);
  if (!is_end(start, transfer)) return;
  Gradients& gradients = of_window ? windows_[start.owner.number] : slabs_[start.slab];
  Action action = of_blocks(ActionKind::reduce, start);
  action.unit = start.unit;
  action.first = start.block;
  action.last = start.block + 1;
  wait_for(action, gradients.backward);
  gradients.sums[start.unit] = in_parts(std::move(action), transfer, start.end - start.start);
}

void StretchWriter::update(const Task& start) {
  if (start.rank != rank_) return;
  Action action = of_blocks(ActionKind::update, start);
  for (const auto& [unit, last_part] : slabs_[start.slab].sums) wait_for(action, last_part);
  slabs_.erase(start.slab);
  const std::int64_t at = add(std::move(action), start.end - start.start);
  for (const int unit : start.units) touched_[unit] = at;
}

void StretchWriter::exchange(const Task& start) {
  const Transfer transfer = exchange_of(outline_, start.unit);
  if (!is_end(start, transfer)) return;
  const bool sends = start.rank == rank_;
  Action message = action_of(sends ? ActionKind::send : ActionKind::receive);
  message.queue = Queue::bulk;
  message.payload = Payload::unit_gradient;
  message.subnet = start.owner.number;
  message.chunk = outline_.stage_of_rank(start.rank);
  message.unit = start.unit;
  message.first = message.last = start.block;
  message.peer = sends ? start.peer : start.rank;
  Gradients& window = windows_[start.owner.number];
  if (!sends)
    wait_for(message, applied_[start.owner.number % 2]);  // it lies where that of two windows before did
  const auto summed = window.sums.find(start.unit);
  if (sends) wait_for(message, summed != window.sums.end() ? summed->second : window.backward);
  window.exchanged.push_back(in_parts(std::move(message), transfer, start.end - start.start));
}

/// States leave behind the updates of their last users here, and arrive where neither a user nor a message is
/// at them any more.
void StretchWriter::move(const Task& start) {
  const Transfer transfer = move_of(outline_, start.units);
  if (!is_end(start, transfer)) return;
  const bool sends = start.rank == rank_;
  Action message = action_of(sends ? ActionKind::send : ActionKind::receive);
  message.queue = Queue::bulk;
  message.payload = Payload::unit_state;
  message.subnet = start.owner.number;
  message.units.assign(start.units.begin(), start.units.end());
  message.peer = sends ? start.peer : start.rank;
  message.chunk = start.chunk;
  for (const int unit : start.units)
    if (const auto touched = touched_.find(unit); touched != touched_.end())
      wait_for(message, touched->second);
  const std::int64_t last = in_parts(std::move(message), transfer, start.end - start.start);
  if (start.owner.of == Owner::cut) return;  // home, where nobody reads it before the cut
  if (!sends) return moved_[start.owner.number].push_back(last);
  for (const int unit : start.units) touched_[unit] = last;
}

/// One unit after the other, each in an equal part of the time.
void StretchWriter::shared_update(const Task& start) {
  if (start.rank != rank_) return;
  const Gradients& window = windows_[start.owner.number];
  const Transfer turns{.parts = static_cast<int>(shared_.size())};
  for (int turn = 0; turn < turns.parts; ++turn) {
    Action action = action_of(ActionKind::update);
    action.unit = shared_[turn];
    action.chunk = outline_.stage_of_rank(rank_);
    action.subnet = start.owner.number;
    action.waits = start.waits;
    for (const auto& [unit, last_part] : window.sums) wait_for(action, last_part);
    for (const std::int64_t earlier : window.exchanged) wait_for(action, earlier);
    applied_[start.owner.number % 2] = add(std::move(action), turns.of_part(turn, start.end - start.start));
  }
  windows_.erase(start.owner.number);
}

}  // namespace mindpipe
