#include "program/lists/list_writer.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mindpipe {
namespace {

/// The numbered one of rooms that are made when they are first named.
Room& at(std::vector<Room>& rooms, int number) {
  if (number >= static_cast<int>(rooms.size())) rooms.resize(number + 1);
  return rooms[number];
}

Action action_of_task(ActionKind kind, const Task& task) {
  Action action = action_of(kind);
  action.subnet = task.owner.number;
  action.chunk = task.chunk;
  return action;
}

/// A pass, or one end of a message.
Action of_micro_batch(ActionKind kind, const Task& task, const Outline& outline) {
  Action action = action_of_task(kind, task);
  action.micro_batch = task.micro_batch;
  action.shard = task.micro_batch / outline.micro_batches_of_shard();
  action.first = task.first;
  action.last = task.last;
  return action;
}

}  // namespace

ListWriter::ListWriter(const Outline& outline, int rank, const Rings& rings, std::int64_t window)
    : outline_(outline),
      rank_(rank),
      window_(window),
      units_(outline.has_moves() ? outline.units.size() : 0) {
  for (const auto& [key, numbers] : rings) rings_.try_emplace(key, numbers, key.peer == rank);
  for (const int unit : outline.units_of_rank(outline.stage_of_rank(rank)))
    if (window > 0 && outline.units[unit].shared) shared_units_.push_back(unit);
}

ListStretch ListWriter::take() {
  begin_ = place();
  ledger_.begin_at(begin_);
  return std::exchange(stretch_, {});
}

void ListWriter::add(const Task& task) {
  switch (task.kind) {
    case TaskKind::forward:
      return pass(ActionKind::forward, task);
    case TaskKind::backward:
      return pass(ActionKind::backward, task);
    case TaskKind::backward_input:
      return pass(ActionKind::backward_input, task);
    case TaskKind::backward_weight:
      return pass(ActionKind::backward_weight, task);
    case TaskKind::update:
      return task.owner.of == Owner::window ? update_shared(task) : update(task);
    case TaskKind::message:
      return message(task);
    case TaskKind::sum:
      return sum(task);
    case TaskKind::exchange:
      return exchange(task);
    case TaskKind::move:
      return move(task);
    case TaskKind::gather:
    case TaskKind::scalars:
      MP_CHECK(false, "the writer of subnets and forwards writes no {}",
               task.kind == TaskKind::gather ? "gather" : "sum of scalars");
  }
}

void ListWriter::put(Action action, std::int64_t time) {
  std::sort(action.after.begin(), action.after.end());
  action.after.erase(std::unique(action.after.begin(), action.after.end()), action.after.end());
  stretch_.actions.push_back(std::move(action));
  stretch_.times.push_back(time);
}

/// Writes a transfer as entries of its own, each with its ticket.
void ListWriter::put_parts(Action action, const Transfer& transfer, std::int64_t time) {
  action.parts = transfer.parts;
  for (int part = 0; part < transfer.parts; ++part) {
    action.part = part;
    action.bytes = transfer.of_part(part, transfer.bytes);
    action.ticket = tickets_++;
    put(action, transfer.of_part(part, time));
  }
}

/// Whether a transfer in parts begins or ends here; elsewhere it takes its tickets alone.
bool ListWriter::takes_part(const Task& task) {
  if (task.rank == rank_ || task.peer == rank_) return true;
  tickets_ += task.parts;
  return false;
}

/// The rank of a chunk in this lane; -1: there is no such chunk.
int ListWriter::rank_of(int chunk) const {
  if (chunk < 0 || chunk >= outline_.all_chunks()) return -1;
  return outline_.lane_of_rank(rank_) * outline_.stages + outline_.rank_of(chunk);
}

BufferRing& ListWriter::ring(int peer, bool with_forward, bool outgoing) {
  return rings_.at({peer, with_forward, outgoing || peer == rank_});
}

void ListWriter::pass(ActionKind kind, const Task& task) {
  if (task.rank != rank_) return;
  Action action = of_micro_batch(kind, task, outline_);
  action.tape = std::max(task.slot, 0);  // what forwards alone save, the next one overwrites
  action.slab = task.slab;
  action.clears = task.clears;
  action.fold = task.fold;
  action.sums = task.sums.calls;
  action.bytes = task.sums.bytes;
  action.waits = task.waits;
  const bool goes_on = is_forward(action), goes_back = is_backward(action);
  if (const auto came = came_for_.find(action.subnet); goes_on && came != came_for_.end()) {
    for (const int unit : came->second) ledger_.read(units_[unit], place(), action);
    came_for_.erase(came);
  }
  if (goes_on || goes_back) cross(task, goes_on ? 1 : -1, action);
  if (makes_gradients(action) && !shared_units_.empty())
    ledger_.write(windows_[action.subnet / window_].added, place(), action);
  if (task.slab >= 0) ledger_.write(at(slabs_, task.slab), place(), action);
  put(std::move(action), task.end - task.start);
}

/// What a pass takes in from the chunk before it on its way, and leaves for the one behind. Where no message
/// comes to a slot, the pass itself is the first to use it.
void ListWriter::cross(const Task& task, int way, Action& action) {
  const int from = rank_of(task.chunk - way), to = rank_of(task.chunk + way);
  BufferRing* arrived = nullptr;
  if (task.slot >= 0) {
    Room& slot = at(slots_, task.slot);
    if (from >= 0) ledger_.read(slot, place(), action);
    else ledger_.write(slot, place(), action);
  } else if (from >= 0) {
    arrived = &ring(from, way > 0, false);
    action.from_buffer = arrived->oldest().number;
    ledger_.read(arrived->oldest().room, place(), action);
  }
  if (to >= 0) {
    Buffer& out = ring(to, way > 0, true).fill();
    action.to_buffer = out.number;
    ledger_.write(out.room, place(), action);
  }
  if (arrived != nullptr) arrived->empty_oldest();
}

void ListWriter::message(const Task& task) {
  const bool leaves = task.rank == rank_, arrives = task.peer == rank_;
  const auto payloads = payloads_of(outline_.cuts[task.first], task.with_forward);
  if (!leaves && !arrives) {
    for (const auto& [payload, bytes] : payloads) tickets_ += bytes > 0 ? 1 : 0;
    return;
  }
  Action action = of_micro_batch(leaves ? ActionKind::send : ActionKind::receive, task, outline_);
  action.last = action.first;
  Room& room = leaves ? leave(task, action) : arrive(task, action);
  bool is_first = true;
  for (const auto& [payload, bytes] : payloads) {
    if (bytes == 0) continue;
    action.ticket = tickets_++;
    action.payload = payload;
    action.bytes = bytes;
    if (leaves) ledger_.read(room, place(), action);
    else if (is_first) ledger_.write(room, place(), action);
    else ledger_.join(room, place(), action);
    is_first = false;
    put(action, task.end - task.start);
  }
}

/// A message leaves from the buffer that was filled first.
Room& ListWriter::leave(const Task& task, Action& send) {
  BufferRing& buffers = ring(task.peer, task.with_forward, true);
  Buffer& buffer = buffers.oldest();
  buffers.empty_oldest();
  send.peer = task.peer;
  send.from_buffer = buffer.number;
  return buffer.room;
}

/// In a slot, a forward's input lies where the micro-batch before it was, and a gradient follows the forward
/// of its own.
Room& ListWriter::arrive(const Task& task, Action& receive) {
  receive.peer = task.rank;
  receive.chunk += task.with_forward ? 1 : -1;
  receive.tape = task.slot;
  if (task.slot >= 0) return at(slots_, task.slot);
  Buffer& buffer = ring(task.rank, task.with_forward, false).fill();
  receive.to_buffer = buffer.number;
  return buffer.room;
}

void ListWriter::sum(const Task& task) {
  if (!takes_part(task)) return;
  Action action = action_of_task(ActionKind::reduce, task);
  action.unit = task.unit;
  action.first = task.block;
  action.last = task.block + 1;
  action.slab = task.slab;
  const std::int64_t last = place() + task.parts - 1;
  if (task.owner.of == Owner::window) {
    Window& window = windows_[task.owner.number];
    ledger_.follow(window.added, action);
    ledger_.write(window.sums[task.unit], last, action);
    ledger_.read(window.exchanged, last, action);
  } else {
    ledger_.read(at(slabs_, task.slab), last, action);
  }
  put_parts(std::move(action), sum_over_data(outline_, task.unit), task.end - task.start);
}

/// What a window adds to a unit goes to another rank of use, and arrives where that of two windows before
/// did.
void ListWriter::exchange(const Task& task) {
  if (!takes_part(task)) return;
  const bool sends = task.rank == rank_;
  Action action = action_of_task(sends ? ActionKind::send : ActionKind::receive, task);
  action.queue = Queue::bulk;
  action.payload = Payload::unit_gradient;
  action.unit = task.unit;
  action.first = action.last = task.block;
  action.peer = sends ? task.peer : task.rank;
  const std::int64_t last = place() + task.parts - 1;
  Window& window = windows_[task.owner.number];
  if (!sends) ledger_.read(arrivals_[task.owner.number % 2], last, action);
  else ledger_.follow(outline_.data > 1 ? window.sums[task.unit] : window.added, action);
  ledger_.read(window.exchanged, last, action);
  put_parts(std::move(action), exchange_of(outline_, task.unit), task.end - task.start);
}

void ListWriter::update(const Task& task) {
  if (task.rank != rank_) return;
  Action action = action_of_task(ActionKind::update, task);
  action.first = task.first;
  action.last = task.last;
  action.slab = task.slab;
  action.waits = task.waits;
  ledger_.write(at(slabs_, task.slab), place(), action);
  // The subnet's first forward has waited for their states.
  for (const int unit : task.units) units_[unit].overwrite({place(), action.queue});
  put(std::move(action), task.end - task.start);
}

/// One unit after the other, each in an equal part of the time, once all that travels has ended.
void ListWriter::update_shared(const Task& task) {
  if (task.rank != rank_) return;
  Action action = action_of_task(ActionKind::update, task);
  action.waits = task.waits;
  const Transfer turns{.parts = static_cast<int>(shared_units_.size())};
  const std::int64_t last = place() + turns.parts - 1;
  ledger_.write(windows_[task.owner.number].exchanged, last, action);
  ledger_.write(arrivals_[task.owner.number % 2], last, action);
  windows_.erase(task.owner.number);
  for (int turn = 0; turn < turns.parts; ++turn) {
    action.unit = shared_units_[turn];
    put(action, turns.of_part(turn, task.end - task.start));
  }
}

/// States leave behind what was last done to them here, and arrive where a message has taken older ones.
/// States that go home are read behind a drain, where all has ended.
void ListWriter::move(const Task& task) {
  if (!takes_part(task)) return;
  const bool sends = task.rank == rank_, goes_home = task.owner.of == Owner::drain;
  Action action = action_of_task(sends ? ActionKind::send : ActionKind::receive, task);
  action.queue = Queue::bulk;
  action.payload = Payload::unit_state;
  action.units.assign(task.units.begin(), task.units.end());
  action.peer = sends ? task.peer : task.rank;
  const std::int64_t last = place() + task.parts - 1;
  for (const int unit : task.units)
    if (goes_home) ledger_.follow(units_[unit], action);
    else ledger_.write(units_[unit], last, action);
  if (!sends && !goes_home) {
    std::vector<int>& came = came_for_[task.owner.number];
    came.insert(came.end(), task.units.begin(), task.units.end());
  }
  put_parts(std::move(action), move_of(outline_, task.units), task.end - task.start);
}

}  // namespace mindpipe
