#pragma once
#include <cstdint>
#include <span>

#include "program/action.h"
#include "program/clock/ports.h"

namespace mindpipe {

/// What a clock gives times to. A task is one or more actions of one or more ranks: a message is a send and a
/// receive for each payload, a sum goes in parts.
enum class TaskKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  update,    ///< update of all units of the owner on the rank
  message,   ///< between neighbouring chunks; a subnet's has the receiver's slot
  sum,       ///< over data, of one use of a unit
  exchange,  ///< exchange of that sum with another home of the unit
  gather,    ///< over data, of a unit's values
  scalars,   ///< over the grid: loss, valid tokens, the gradient's squares
  move,      ///< units' states travel to the rank of their next user
  fetch,     ///< a unit's state comes from the host's memory to the device
  evict,     ///< it goes back
  stash,     ///< the segment of a swapped block goes to the host's memory
  unstash,   ///< it comes back
};

// Passes stand first among both kinds, in one order.
constexpr TaskKind task_of_pass(ActionKind pass) { return static_cast<TaskKind>(pass); }
constexpr ActionKind pass_of_task(TaskKind task) { return static_cast<ActionKind>(task); }
constexpr bool is_pass(TaskKind task) { return task <= TaskKind::backward_weight; }
static_assert(task_of_pass(ActionKind::forward) == TaskKind::forward &&
              task_of_pass(ActionKind::backward) == TaskKind::backward &&
              task_of_pass(ActionKind::backward_input) == TaskKind::backward_input &&
              task_of_pass(ActionKind::backward_weight) == TaskKind::backward_weight);

// Copies stand last among both kinds, in one order.
constexpr TaskKind task_of_copy(ActionKind copy) {
  return static_cast<TaskKind>(static_cast<int>(copy) - static_cast<int>(ActionKind::fetch) +
                               static_cast<int>(TaskKind::fetch));
}
constexpr ActionKind copy_of_task(TaskKind task) {
  return static_cast<ActionKind>(static_cast<int>(task) - static_cast<int>(TaskKind::fetch) +
                                 static_cast<int>(ActionKind::fetch));
}
constexpr bool is_copy(TaskKind task) { return task >= TaskKind::fetch; }
static_assert(task_of_copy(ActionKind::evict) == TaskKind::evict &&
              task_of_copy(ActionKind::stash) == TaskKind::stash &&
              task_of_copy(all_kinds<ActionKind>().back()) == TaskKind::unstash);

/// What an action of a list is to a clock.
inline TaskKind kind_of(const Action& action) {
  return by_shape(
      action.kind, [&](const PassTraits&) { return task_of_pass(action.kind); },
      [](const UnitTraits&) { return TaskKind::update; },
      [&](const CopyTraits&) { return task_of_copy(action.kind); },
      [&](const MessageTraits&) {
        return is_move(action)       ? TaskKind::move
               : crosses_cut(action) ? TaskKind::message
                                     : TaskKind::exchange;
      },
      [](const CollectiveTraits& collective) {
        return collective.of == CollectiveTraits::step   ? TaskKind::scalars
               : collective.of == CollectiveTraits::unit ? TaskKind::gather
                                                         : TaskKind::sum;
      });
}

/// The class in which it meets others.
constexpr TrafficClass class_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::scalars:
      return TrafficClass::scalars;
    case TaskKind::message:
      return TrafficClass::pipeline;
    case TaskKind::move:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      return TrafficClass::moves;
    case TaskKind::gather:
      return TrafficClass::values;
    case TaskKind::sum:
    case TaskKind::exchange:
      return TrafficClass::gradients;
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::update:
      break;
  }
  return TrafficClass::tensor;
}

/// One thing that a source lets begin: plain data, in the order in which the clock starts it.
struct Task {
  static constexpr int none = Action::none;  ///< value of a field that names no rank, unit or place
  static constexpr int all_parts = -1;       ///< value of `part`: the transfer as a whole
  static constexpr int next_turn = -1;       ///< value of `turn`: the one behind the last
  TaskKind kind = TaskKind::forward;
  WaitReason waits = WaitReason::input;  ///< why the compute queue was idle before, if it was
  bool with_forward = true;              ///< which way a message travels
  bool clears = false, fold = false;     ///< what Action says of both
  bool goes_on = false;                  ///< a piece of a pass that the next one of its rank goes on with
  int rank = 0;                          ///< where it runs, or whence it leaves
  int peer = none;                       ///< where a message, an exchange or a move goes
  Owner owner = {};
  int chunk = 0, micro_batch = 0;
  Payload payload = Payload::none;  ///< what a message carries; none: all that crosses the cut
  int turn = next_turn;             ///< which crossing of its ring a message is
  int first = 0, last = 0;          ///< blocks of a pass or an update; a message: the cut
  int unit = none, block = 0;       ///< the use that is summed or exchanged; the unit that is gathered
  int part = all_parts, parts = 1;  ///< part of a transfer, of so many
  /// A tape's place, with what arrives for it in a supernet; a gradient slab; where a share moves out to.
  int slot = none, slab = none, apart = none;
  int waiting = none;                                  ///< room of what a backward in halves puts off
  int segment = none, to_segment = none, host = none;  ///< places of segments, as Action says
  TensorSums sums = {};                                ///< inside a pass
  /// Units that move or are updated, ascending; the source keeps them until it is asked for more.
  std::span<const int> units = {};
  int number = none;       ///< by which its source knows it
  std::int64_t lasts = 0;  ///< nanoseconds where it meets no other, as its source says
  /// What it asks of ports: all of its parts together, with the latency of each; a pass, its tensor sums
  /// together. A transfer that asks for nothing lasts as long as said.
  Load load = {};
  void take(const Price& price) {
    lasts = price.lasts;
    load = price.load;
  }
  bool is_whole() const { return part == all_parts; }
  /// How long one of its parts takes where it meets no other.
  std::int64_t part_lasts(int number) const {
    return load == Load{} ? of_turn(number, parts, lasts) : of_turn(number, parts, load.takes) + load.latency;
  }
  std::int64_t start = 0;  ///< nanoseconds, as the clock says
  std::int64_t end = 0;    ///< nanoseconds, as the clock says; expected while it is under way
};

}  // namespace mindpipe
