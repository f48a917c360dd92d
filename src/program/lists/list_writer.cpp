#include "program/lists/list_writer.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "program/lists/written_task.h"
#include "program/moving_step.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

constexpr std::int64_t bytes_of_scalars = 3 * 8;  // loss, valid tokens, squares of the gradient

/// Lets an action come behind the newest one of the compute queue, if it stands among these.
void follow_computed(const std::vector<Action>& earlier, Action& action) {
  const auto newest = std::find_if(earlier.rbegin(), earlier.rend(),
                                   [](const Action& one) { return one.queue == Queue::compute; });
  if (newest != earlier.rend()) action.after.push_back(static_cast<int>(earlier.rend() - newest) - 1);
}

}  // namespace

ListWriter::ListWriter(const Outline& outline, int rank, const Rings& rings, const GradientTurns* turns)
    : ListWriter(outline, rank, rings) {
  slabs_of_block_.resize(outline.blocks.size());
  for (int block = 0; block < outline.all_blocks(); ++block)
    if (turns == nullptr) slabs_of_block_[block].push_back(block);
  if (turns != nullptr)
    for (const auto& [use, place] : turns->places) slabs_of_block_[use.block].push_back(place.slab);
}

ListWriter::ListWriter(const Outline& outline, int rank, const Rings& rings, std::int64_t window)
    : outline_(outline),
      rank_(rank),
      window_(window),
      boundaries_(outline, rank, rings),
      units_(outline.units.size()),
      segments_(outline) {
  for (const int unit : outline.units_of_rank(outline.stage_of_rank(rank)))
    if (window > 0 && outline.units[unit].shared) shared_units_.push_back(unit);
}

ListStretch ListWriter::take() {
  begin_ = place_;
  ledger_.begin_at(begin_);
  return std::exchange(stretch_, {});
}

void ListWriter::add(const Task& task, std::int64_t ticket) {
  if (ticket >= 0) tickets_ = ticket;
  switch (task.kind) {
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
      return pass(pass_of_task(task.kind), task);
    case TaskKind::update:
      return task.owner.of == Owner::window ? update_shared(task) : update(task);
    case TaskKind::message:
      return message(task);
    case TaskKind::sum:
      return sum(task);
    case TaskKind::exchange:
      return exchange(task);
    case TaskKind::gather:
      return gather(task);
    case TaskKind::scalars:
      return scalars(task);
    case TaskKind::move:
      return move(task);
    case TaskKind::fetch:
    case TaskKind::evict:
      return copy(task);
    case TaskKind::stash:
    case TaskKind::unstash:
      return copy_segment(task);
  }
}

void ListWriter::put(Action action, std::int64_t time) {
  waits_.thin(action, begin_);
  waits_.add(action, begin_);
  ++place_;
  stretch_.actions.push_back(std::move(action));
  stretch_.times.push_back(time);
}

/// Writes a transfer, or a part of it, as entries of its own, each with its ticket.
void ListWriter::put_parts(const Task& task, Action action, const Transfer& transfer) {
  action.parts = transfer.parts;
  const int first = std::max(task.part, 0), last = task.is_whole() ? transfer.parts : task.part + 1;
  for (action.part = first; action.part < last; ++action.part) {
    action.bytes = transfer.of_part(action.part, transfer.bytes);
    action.ticket = tickets_++;
    put(action, task.is_whole() ? task.part_lasts(action.part) : task.lasts);
  }
}

/// Whether a transfer in parts begins or ends here; elsewhere it takes its tickets alone.
bool ListWriter::takes_part(const Task& task) {
  if (task.rank == rank_ || task.peer == rank_) return true;
  tickets_ += task.is_whole() ? task.parts : 1;
  return false;
}

void ListWriter::pass(ActionKind kind, const Task& task) {
  if (task.rank != rank_) return;
  Action action = of_micro_batch(kind, task, outline_);
  action.tape = std::max(task.slot, 0);  // what forwards alone save, the next one overwrites
  action.waiting = task.waiting;
  action.slab = task.slab;
  action.clears = task.clears;
  action.fold = task.fold;
  action.sums = task.sums.calls;
  action.bytes = task.sums.bytes;
  action.waits = task.waits;
  const bool goes_on = is_forward(action), goes_back = is_backward(action);
  if (const auto came = came_for_.find(action.owner.number); goes_on && came != came_for_.end()) {
    for (const int unit : came->second) ledger_.read(units_[unit], place_, action);
    came_for_.erase(came);
  }
  if (goes_on && outline_.sharded_optimizer && task.owner.of == Owner::step)
    for (const UnitUse& use : outline_.uses_in(task.first, task.last))
      ledger_.read(units_[use.unit], place_, action);
  if (goes_on || goes_back) boundaries_.cross(task, goes_on ? 1 : -1, ledger_, place_, action);
  if (swaps_blocks(outline_)) segments_.pass(task, ledger_, place_, action);
  if (makes_gradients(action) && !shared_units_.empty())
    ledger_.write(windows_[action.owner.number / window_].added, place_, action);
  const bool goes_on_with = std::exchange(goes_on_, task.goes_on);
  if (task.slab >= 0 && !goes_on_with) ledger_.write(room_at(slabs_, task.slab), place_, action);
  for (int block = task.first; block < task.last && task.slab >= 0; ++block)
    added_[{task.slab, block}].overwrite({place_, action.queue});
  if (!slabs_of_block_.empty() && adds_to_gradients(action))
    for (int block = task.first; block < task.last; ++block)
      for (const int slab : slabs_of_block_[block]) ledger_.write(room_at(slabs_, slab), place_, action);
  put(std::move(action), task.lasts);
}

void ListWriter::message(const Task& task) {
  const bool leaves = task.rank == rank_, arrives = task.peer == rank_;
  const auto payloads = payloads_of(outline_.cuts[task.first], task.with_forward);
  const auto travels = [&](Payload payload, std::int64_t bytes) {
    return bytes > 0 && (task.payload == Payload::none || task.payload == payload);
  };
  if (!leaves && !arrives) {
    for (const auto& [payload, bytes] : payloads) tickets_ += travels(payload, bytes) ? 1 : 0;
    return;
  }
  Action action = of_micro_batch(leaves ? ActionKind::send : ActionKind::receive, task, outline_);
  action.last = action.first;
  bool is_first = true;
  const std::int64_t all = payloads[0].second + payloads[1].second;
  Room& room = leaves ? boundaries_.leave(task, action) : boundaries_.arrive(task, action, is_first);
  for (const auto& [payload, bytes] : payloads) {
    if (!travels(payload, bytes)) continue;
    action.ticket = tickets_++;
    action.payload = payload;
    action.bytes = bytes;
    if (leaves) ledger_.read(room, place_, action);
    else if (is_first) ledger_.write(room, place_, action);
    else ledger_.join(room, place_, action);
    is_first = false;
    const bool is_one = task.payload != Payload::none || bytes == all;
    put(action, is_one ? task.lasts : payload_lasts(task, bytes, all, payload == payloads[0].first));
  }
}

void ListWriter::sum(const Task& task) {
  if (!takes_part(task)) return;
  Action action = action_of_task(ActionKind::reduce, task);
  action.unit = task.unit;
  action.first = task.block;
  action.last = task.block + 1;
  action.slab = task.slab;
  action.apart = task.apart;
  const std::int64_t last = last_place(task, place_);
  const bool of_window = task.owner.of == Owner::window;
  if (of_window) {
    ledger_.follow(windows_[task.owner.number].added, action);
  } else if (task.owner.of == Owner::subnet) {
    ledger_.follow(added_[{task.slab, task.block}], action);
    room_at(slabs_, task.slab).readers.push_back({last, action.queue});
  } else {
    Room& slab = room_at(slabs_, task.slab < 0 ? task.block : task.slab);
    if (last < 0) ledger_.follow(slab, action);
    else ledger_.read(slab, last, action);
  }
  if (last >= 0 && task.owner.of != Owner::subnet) {
    Window& window = windows_[task.owner.number];
    window.sums[{task.unit, task.block}].overwrite({last, action.queue});
    ledger_.read(window.exchanged, last, action);
  }
  put_parts(task, std::move(action), sum_over_data(outline_, task.unit));
}

/// What a step or a window adds to a unit goes to another rank of use, and arrives where that of two windows
/// before did.
void ListWriter::exchange(const Task& task) {
  if (!takes_part(task)) return;
  const bool sends = task.rank == rank_;
  Action action = action_of_task(sends ? ActionKind::send : ActionKind::receive, task);
  action.queue = Queue::bulk;
  action.payload = Payload::unit_gradient;
  action.unit = task.unit;
  action.first = action.last = task.block;
  action.peer = sends ? task.peer : task.rank;
  if (way_of(outline_, task.unit)) return hand_over(task, action);
  const std::int64_t last = last_place(task, place_);
  Window& window = windows_[task.owner.number];
  const bool is_summed = task.owner.of == Owner::step || outline_.data > 1;
  if (sends) ledger_.follow(is_summed ? window.sums[{task.unit, task.block}] : window.added, action);
  else if (last < 0) ledger_.follow(arrivals_[task.owner.number % 2], action);
  else ledger_.read(arrivals_[task.owner.number % 2], last, action);
  if (last >= 0) ledger_.read(window.exchanged, last, action);
  put_parts(task, std::move(action), exchange_of(outline_, task.unit));
}

/// The gradient of a unit that moves goes to its next home, behind its sum, and lies in a place of its own.
void ListWriter::hand_over(const Task& task, Action& action) {
  const std::int64_t last = last_place(task, place_);
  if (sends(action)) ledger_.follow(windows_[task.owner.number].sums[{task.unit, task.block}], action);
  else if (last >= 0) ledger_.write(came_gradients_[task.unit], last, action);
  put_parts(task, std::move(action), exchange_of(outline_, task.unit));
}

void ListWriter::scalars(const Task& task) {
  Action action = action_of_task(ActionKind::sum_scalar, task);
  action.bytes = outline_.stages * outline_.data > 1 ? bytes_of_scalars : 0;
  action.ticket = tickets_++;
  ledger_.write(windows_[task.owner.number].exchanged, place_, action);
  put(std::move(action), task.lasts);
}

/// Values come together that forwards read, and that an update overwrites.
void ListWriter::gather(const Task& task) {
  if (!takes_part(task)) return;
  Action action = action_of_task(ActionKind::gather, task);
  action.unit = task.unit;
  if (const std::int64_t last = last_place(task, place_); last >= 0)
    ledger_.write(units_[task.unit], last, action);
  put_parts(task, std::move(action), gather_over_data(outline_, task.unit));
}

void ListWriter::update(const Task& task) {
  if (task.rank != rank_) return;
  Action action = action_of_task(ActionKind::update, task);
  action.waits = task.waits;
  action.unit = task.unit;
  action.first = task.first;
  action.last = task.last;
  action.slab = task.slab;
  if (task.unit >= 0) ledger_.write(units_[task.unit], place_, action);
  if (const auto turn = fetched_.find(task.unit); turn != fetched_.end())
    ledger_.write(slots_of_state_[turn->second], place_, action);
  if (const auto came = came_gradients_.find(task.unit); came != came_gradients_.end())
    ledger_.read(came->second, place_, action);
  if (task.slab >= 0) ledger_.write(room_at(slabs_, task.slab), place_, action);
  // The subnet's first forward has waited for their states.
  for (const int unit : task.units) units_[unit].overwrite({place_, action.queue});
  put(std::move(action), task.lasts);
}

/// The state of a unit comes into the slot whose turn it is, and goes back from there.
void ListWriter::copy(const Task& task) {
  if (task.rank != rank_) return;
  Action action = action_of_task(copy_of_task(task.kind), task);
  const bool comes = shape_of<CopyTraits>(action)->comes;
  action.unit = task.unit;
  action.bytes = share_of_state(outline_, task.unit);
  const int turn = static_cast<int>(fetched_.size()) % state_slots;
  Room& slot = slots_of_state_[fetched_.try_emplace(task.unit, turn).first->second];
  comes ? ledger_.write(slot, place_, action) : ledger_.read(slot, place_, action);
  put(std::move(action), task.lasts);
}

void ListWriter::copy_segment(const Task& task) {
  if (task.rank != rank_) return;
  Action action = of_micro_batch(copy_of_task(task.kind), task, outline_);
  segments_.copy(task, ledger_, place_, action);
  put(std::move(action), task.lasts);
}

/// One unit after the other, each in an equal part of the time, once all that travels has ended.
void ListWriter::update_shared(const Task& task) {
  if (task.rank != rank_) return;
  Action action = action_of_task(ActionKind::update, task);
  action.waits = task.waits;
  const Transfer turns{.parts = static_cast<int>(shared_units_.size())};
  const std::int64_t last = place_ + turns.parts - 1;
  ledger_.write(windows_[task.owner.number].exchanged, last, action);
  ledger_.write(arrivals_[task.owner.number % 2], last, action);
  windows_.erase(task.owner.number);
  for (int turn = 0; turn < turns.parts; ++turn) {
    action.unit = shared_units_[turn];
    put(action, turns.of_part(turn, task.lasts));
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
  const std::int64_t last = last_place(task, place_);
  const bool of_step = task.owner.of == Owner::step;
  for (const int unit : task.units)
    if (of_step && sends) continue;  // no update of the step is of what leaves
    else if (goes_home || last < 0) ledger_.follow(units_[unit], action);
    else ledger_.write(units_[unit], last, action);
  // A rank's moves leave one at a time, in the order of the plan, wherever they go.
  if (sends && !of_step) ledger_.write(leaving_, last_place(task, place_), action);
  // It would hold up what updates still wait for, and nobody waits for it.
  if (sends && goes_home) follow_computed(stretch_.actions, action);
  if (!sends && !goes_home && !of_step) {
    std::vector<int>& came = came_for_[task.owner.number];
    came.insert(came.end(), task.units.begin(), task.units.end());
  }
  put_parts(task, std::move(action), move_of(outline_, task.units));
}

}  // namespace mindpipe
