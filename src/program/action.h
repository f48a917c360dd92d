#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/queue.h"
#include "core/traffic_class.h"
#include "program/outline.h"

namespace mindpipe {

/// Who takes part in a collective: ranks that differ from this one only on the data axis, or all of the grid.
#define MINDPIPE_MEMBERS(kind) kind(none, "none") kind(data, "data") kind(grid, "grid")
MINDPIPE_KINDS(Members, NamedRow, MINDPIPE_MEMBERS)

/// Which way a pass carries values through the model: it reads one boundary of its blocks and writes the
/// other, or neither. A forward takes the tape that all other passes of its micro-batch use.
enum class Travel : std::uint8_t { forward, backward, nowhere };

// What a kind of action works on is one of five shapes, each with all that the checker, the placement, the
// simulator and the executor ask of it.

/// A pass: it runs blocks of one chunk on one micro-batch.
struct PassTraits {
  char letter;  ///< in listings
  Travel travel;
  MadeGradients makes;
  std::int64_t BlockCost::*time;  ///< over one block
  TensorSums BlockCost::*sums;    ///< inside that time; null: none
  /// One of the halves of a backward.
  constexpr bool is_half() const { return makes == MadeGradients::at_once || makes == MadeGradients::later; }
};
/// Work on a unit that no other rank takes part in.
struct UnitTraits {
  std::int64_t UnitCost::*time;
};
/// A copy between the host's memory and the device's: of a unit's masters and moments, or of the segment of a
/// tape in which a block keeps what its backward reads.
struct CopyTraits {
  enum Of : std::uint8_t { unit, segment };
  Of of;
  bool comes;  ///< to the device
};
/// One end of a message to or from `peer`.
struct MessageTraits {
  bool outgoing;
};
/// A call of all members of a group: for the whole step, for a unit, or for one use of a unit.
struct CollectiveTraits {
  enum Of : std::uint8_t { step, unit, use };
  Members members;
  Of of;
};

/// What holds for all actions of a kind.
struct ActionTraits {
  enum Steps : std::uint8_t { every, training };
  std::string_view name;
  Queue queue;           ///< where its actions run
  TrafficClass traffic;  ///< class of the messages; for a pass, of the sums inside it
  Steps steps;           ///< steps that may have it: all, or all but evaluations
  std::variant<PassTraits, UnitTraits, CopyTraits, MessageTraits, CollectiveTraits> shape;
};

/// What one entry of a rank's list does. A row that leaves something out does not compile; for a new kind the
/// compiler names every switch that has to know it.
// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
#define MINDPIPE_ACTIONS(kind) /* queue, traffic, steps, shape */ \
  kind(forward, "forward", Queue::compute, TrafficClass::tensor, ActionTraits::every, \
       PassTraits{'F', Travel::forward, MadeGradients::none, &BlockCost::forward, &BlockCost::forward_sums}) \
  kind(backward, "backward", Queue::compute, TrafficClass::tensor, ActionTraits::training, \
       PassTraits{'B', Travel::backward, MadeGradients::all, &BlockCost::backward, \
                  &BlockCost::backward_sums}) \
  kind(backward_input, "backward_input", Queue::compute, TrafficClass::tensor, ActionTraits::training, \
       PassTraits{'I', Travel::backward, MadeGradients::at_once, &BlockCost::backward_input, \
                  &BlockCost::backward_sums}) \
  kind(backward_weight, "backward_weight", Queue::compute, TrafficClass::tensor, ActionTraits::training, \
       PassTraits{'W', Travel::nowhere, MadeGradients::later, &BlockCost::backward_weight, nullptr}) \
  kind(update, "update", Queue::compute, TrafficClass::tensor, ActionTraits::training, \
       UnitTraits{&UnitCost::update}) \
  kind(send, "send", Queue::send, TrafficClass::pipeline, ActionTraits::every, MessageTraits{true}) \
  kind(receive, "receive", Queue::receive, TrafficClass::pipeline, ActionTraits::every, \
       MessageTraits{false}) \
  kind(reduce, "reduce", Queue::bulk, TrafficClass::gradients, ActionTraits::training, \
       CollectiveTraits{Members::data, CollectiveTraits::use}) \
  kind(gather, "gather", Queue::bulk, TrafficClass::values, ActionTraits::training, \
       CollectiveTraits{Members::data, CollectiveTraits::unit}) \
  kind(sum_scalar, "sum_scalar", Queue::compute, TrafficClass::scalars, ActionTraits::training, \
       CollectiveTraits{Members::grid, CollectiveTraits::step}) \
  kind(fetch, "fetch", Queue::copy_in, TrafficClass::moves, ActionTraits::training, \
       CopyTraits{CopyTraits::unit, true}) \
  kind(evict, "evict", Queue::copy_out, TrafficClass::moves, ActionTraits::training, \
       CopyTraits{CopyTraits::unit, false}) \
  kind(stash, "stash", Queue::copy_out, TrafficClass::moves, ActionTraits::training, \
       CopyTraits{CopyTraits::segment, false}) \
  kind(unstash, "unstash", Queue::copy_in, TrafficClass::moves, ActionTraits::training, \
       CopyTraits{CopyTraits::segment, true})
MINDPIPE_KINDS(ActionKind, ActionTraits, MINDPIPE_ACTIONS)
#pragma GCC diagnostic pop
// clang-format on
constexpr const ActionTraits& traits_of(ActionKind kind) { return row_of(kind); }

/// What a message is. Activation and encoder output travel with the forwards, their gradients with the
/// backwards; a unit's gradient goes from one of its homes to another at the end of the step. A unit's state
/// (masters, moments, counters) moves from the rank where its last user ran to the rank where the next one
/// will.
#define MINDPIPE_PAYLOADS(kind)                                                            \
  kind(none, "none") kind(activation, "activation") kind(encoder_output, "encoder output") \
      kind(gradient, "gradient") kind(encoder_output_gradient, "encoder output gradient")  \
          kind(unit_gradient, "unit gradient") kind(unit_state, "unit state")
MINDPIPE_KINDS(Payload, NamedRow, MINDPIPE_PAYLOADS)

/// Why a supernet's stage stands idle, on paper, before it begins something: nothing is there (messages and
/// work of others), a forward that is there waits for an older subnet's update of a unit, or for a room.
enum class WaitReason : std::uint8_t { input, owner, room };
inline constexpr int wait_reasons = 3;

/// Whose work something is: the step's, a subnet's of a stream, a window's of subnets, a batch's that is only
/// run forward, or the drain's before subnet `number`.
struct Owner {
  enum Of : std::uint8_t { step, subnet, window, batch, drain };
  static constexpr int kinds = 5;
  Of of = step;
  std::int64_t number = 0;
  auto operator<=>(const Owner&) const = default;
};
/// step, subnet, window, batch or drain.
const char* name_of(Owner::Of of);

/// One entry of a rank's list: plain data.
///
/// What an executor must know:
/// - A list is the step of one pipeline rank, or a stretch of a program without an end: more actions behind
///   those that the rank had before. Ranks that differ only in their tensor or data coordinate run equal
///   lists.
/// - `owner`: whose work a pass, message, sum or update is; micro-batches and shards count within it. A step
///   trains but one network, of number 0.
/// - `shard` is counted within the rank (the logical shard is data coordinate x shards + shard),
///   `micro_batch` within the rank's step (0 .. m-1, shard after shard, so its place in the shard is
///   micro_batch mod (m / shards)).
/// - Keep one cursor for each queue (`queue_of`). The head of a queue starts when the action before it in
///   that queue has ended and all of its `after` have ended; never choose otherwise. A step has ended when
///   all queues are empty.
/// - forward, backward: blocks [first, last) of chunk `chunk` on micro-batch `micro_batch`, with the tape of
///   arena `tape`. What enters is in boundary buffer `from_buffer`, what leaves goes to boundary buffer
///   `to_buffer` (none: the batch, or the loss). A buffer holds all payloads of one boundary; when
///   neighbouring chunks are on one rank the same buffer is written by one and read by the other, and there
///   are no messages.
/// - The backward of the step's last micro-batch comes in pieces, one for each block, one directly after the
///   other: all name `from_buffer`, which the first one reads (it may be overwritten until the last has
///   ended); the last one names and writes `to_buffer`; what passes between the pieces is the executor's.
/// - Where blocks are swapped, a training step's forwards and backwards come in pieces (pieces_of),
///   those of one pass directly one after the other, with buffers as said above. The piece of a swapped block
///   finds its segment in slot `segment` of the block's own slots on the device; what a forward's piece gives
///   to a swapped block goes to slot `to_segment` of that.
/// - stash, unstash: the segment of block `first` of a micro-batch, on tape `tape`, goes from slot `segment`
///   to place `host` of the block's own in the host's memory, or from there to slot `segment`. A segment
///   whose backward comes directly behind its forward stays where it is.
/// - A forward's tape fills the arena until its last backward has ended; in an evaluation (no backwards)
///   until the forward itself has ended.
/// - With backward_input / backward_weight, the tape keeps operands of weight gradients, and its arena is
///   free after backward_weight only. What backward_input makes of them lies in arena `waiting` from then
///   on, where it finds no place on the tape.
/// - `clears`: the first to add to the gradients of its blocks, which are zeroed before.
/// - `fold`: after this action those gradients of its blocks which a pass of its kind makes hold all
///   micro-batches of `shard`, and are added to the binary counter.
/// - send: buffer `from_buffer` to pipeline rank `peer`; receive: from `peer` into buffer `to_buffer`.
///   `first` is the block that the cut precedes. With payload `unit_gradient`: the gradient of `unit` from
///   its use in block `first`, summed over data; without buffers: the runtime owns one place for each use,
///   and after the last of these receives adds all uses in model order (uses on one rank need no message).
/// - reduce: sum the gradient of `unit` from its use in block `first` over group `data` (a sum_scatter when
///   the optimizer is sharded). When gradients are sharded, the accumulators lie in slab `slab`, and this
///   rank's share of the sum moves out to place `apart`, or stays where it is until the update (none) because
///   nobody else comes to the slab.
/// - Bulk transfers (reduce, gather, messages of payload `unit_gradient`) come in `parts`, as
///   Outline::part_bytes says, each an entry of its own: part k is the k-th cut of every rank's share. They
///   end in order; an executor may begin the one behind a queue's head ahead of time, when its `after` have
///   ended, and begins none while a higher class has traffic on its way.
/// - sum_scalar: loss, valid tokens and the gradient's squares over group `grid`. update: `unit`, own share
///   only when sharded; a gather brings its values over `data` together at the head of the next step's list.
///   A group of one does nothing.
/// - Of a supernet: an arena holds what arrives of a micro-batch, too; receives name it as `tape`, and a pass
///   reads there. An update of blocks [first, last) is of the units that the subnet uses there, whose
///   gradients are in slab `slab`; it gives the slab back.
/// - A move: a send and a receive of payload `unit_state`, in queue `bulk`, of class `moves`. `units` travel
///   from the rank where their last user ran to rank `peer`, or from there; `owner` is the reader. At a
///   drain, which owns these moves, all units come home to all lanes. In `parts`: part k is the k-th cut of
///   the states one after the other. A step that moves blocks has one for each pair of stages, of the units
///   that leave; the gradients of these follow as `unit_gradient`, and are of no other use to the rank where
///   they were summed.
/// - fetch, evict: masters and moments of `unit`, which are kept in the host's memory, come to the device for
///   the update of the unit and go back behind it. Fetches take the slots of the device (`state_slots`) in
///   turn.
/// - `ticket`: equal on all participants and ascending in every list, since the list writer counts tasks in
///   the order of the clock. Whoever has no tags (NCCL) starts communication in list order, so nobody reads
///   it at run time.
struct Action {
  static constexpr int none = -1;  ///< value of a field that names no place, unit or rank
  ActionKind kind = ActionKind::forward;
  Queue queue = Queue::compute;
  Owner owner = {};
  int shard = 0, micro_batch = none;
  int chunk = none, first = 0, last = 0;
  int unit = none;
  int peer = none;
  Members group = Members::none;
  Payload payload = Payload::none;
  int part = 0, parts = 1;
  int tape = none;     ///< arena of a pass's tape
  int waiting = none;  ///< backward in halves: arena of what its products read beside the tape
  int from_buffer = none, to_buffer = none;  ///< boundary buffers that are read and written
  int slab = none, apart = none;          ///< gradient slab of a reduce; where this rank's share moves out to
  int segment = none, to_segment = none;  ///< slots of a swapped block's segment, and of the next block's
  int host = none;                        ///< place of a segment in the host's memory
  bool clears = false, fold = false;
  int sums = 0;            ///< inside a pass: how many times the ranks that share its products meet
  std::int64_t bytes = 0;  ///< bytes sent (a pass: in its sums) or received by this rank, for the simulator
  std::int64_t ticket = none;
  WaitReason waits = WaitReason::input;  ///< supernet: why the compute queue may have to wait before it
  /// Earlier entries of this list that must have ended, on other queues. In a stretch -1 is the last action
  /// of the stretch before, -2 the one before that, and so on.
  std::vector<int> after;
  std::vector<int> units = {};  ///< move: units whose state travels, ascending

  bool operator==(const Action&) const = default;
};
/// Where an action stands: the entry `index` of the list of `rank`.
struct Place {
  int rank = 0, index = 0;
  bool operator==(const Place&) const = default;
};
/// A step, written down: `ranks[i]` is the list of pipeline rank i.
struct Program {
  std::vector<std::vector<Action>> ranks;
  const Action& at(const Place& place) const { return ranks[place.rank][place.index]; }
  /// The places of all actions, list by list.
  std::vector<Place> places() const;
};

/// Names one queue of a rank: messages of each (peer, direction, payload) have their own, so has each group.
struct QueueKey {
  Queue queue = Queue::compute;
  int peer = Action::none;
  Payload payload = Payload::none;
  bool outgoing = false;
  Members group = Members::none;
  auto operator<=>(const QueueKey&) const = default;
};
QueueKey queue_of(const Action& action);

/// The properties of an action's kind if its shape is the one asked for, or null.
template <class Shape>
constexpr const Shape* shape_of(const Action& action) {
  return std::get_if<Shape>(&traits_of(action.kind).shape);
}
/// An action of a kind, in the queue of its kind and for its group.
inline Action action_of(ActionKind kind) {
  Action action;
  action.kind = kind;
  action.queue = traits_of(kind).queue;
  if (const auto* collective = shape_of<CollectiveTraits>(action)) action.group = collective->members;
  return action;
}
/// Answers by the shape of a kind: one function for each shape.
template <class... Answers>
auto by_shape(ActionKind kind, Answers... answers) {
  struct Choice : Answers... {
    using Answers::operator()...;
  };
  return std::visit(Choice{answers...}, traits_of(kind).shape);
}

/// The properties of a kind that is a pass.
constexpr const PassTraits& traits_of_pass(ActionKind kind) {
  return std::get<PassTraits>(traits_of(kind).shape);
}
inline const PassTraits* pass_of(const Action& action) { return shape_of<PassTraits>(action); }
inline bool is_pass(const Action& action) { return pass_of(action) != nullptr; }
inline bool is_message(const Action& action) { return shape_of<MessageTraits>(action) != nullptr; }
inline bool is_collective(const Action& action) { return shape_of<CollectiveTraits>(action) != nullptr; }
/// A pass or an update: what a rank computes.
inline bool is_work(const Action& action) {
  return is_pass(action) || shape_of<UnitTraits>(action) != nullptr;
}
inline bool is_copy(const Action& action) { return shape_of<CopyTraits>(action) != nullptr; }
/// A copy of a segment of a tape.
inline bool copies_segment(const Action& action) {
  return is_copy(action) && shape_of<CopyTraits>(action)->of == CopyTraits::segment;
}
inline bool is_communication(const Action& action) { return is_message(action) || is_collective(action); }
inline bool sends(const Action& action) {
  return is_message(action) && shape_of<MessageTraits>(action)->outgoing;
}
inline bool is_forward(const Action& action) {
  return is_pass(action) && pass_of(action)->travel == Travel::forward;
}
inline bool is_backward(const Action& action) {
  return is_pass(action) && pass_of(action)->travel == Travel::backward;
}
/// One end of a message that brings the states of `units` to the rank of their next user.
inline bool is_move(const Action& action) { return action.payload == Payload::unit_state; }
/// Whether its messages stand in the queue bulk.
inline bool travels_in_bulk(Payload payload) {
  return payload == Payload::unit_gradient || payload == Payload::unit_state;
}
/// A message between two passes: it crosses a cut of the model.
inline bool crosses_cut(const Action& action) {
  return is_message(action) && !travels_in_bulk(action.payload);
}
/// An action on the parameters, or a gradient, of `unit`.
inline bool names_unit(const Action& action) {
  return by_shape(
      action.kind, [](const PassTraits&) { return false; },
      [&](const UnitTraits&) { return action.first == action.last; },
      [](const CopyTraits& copy) { return copy.of == CopyTraits::unit; },
      [&](const MessageTraits&) { return action.payload == Payload::unit_gradient; },
      [](const CollectiveTraits& collective) { return collective.of != CollectiveTraits::step; });
}
/// A pass that adds to gradients of its blocks' parameters.
inline bool adds_to_gradients(const Action& action) {
  return is_pass(action) && pass_of(action)->makes != MadeGradients::none;
}
/// One of the halves of a backward.
inline bool is_half(const Action& action) { return is_pass(action) && pass_of(action)->is_half(); }
/// A pass that completes the gradients of its blocks' parameters: a whole backward, or the half put off.
inline bool makes_gradients(const Action& action) {
  return is_pass(action) &&
         (pass_of(action)->makes == MadeGradients::all || pass_of(action)->makes == MadeGradients::later);
}
/// Who goes first where what an action sends shares a link with others.
inline TrafficClass class_of(const Action& action) {
  return is_move(action)                            ? TrafficClass::moves
         : action.payload == Payload::unit_gradient ? TrafficClass::gradients
                                                    : traits_of(action.kind).traffic;
}

inline bool travels_forward(Payload payload) {
  return payload == Payload::activation || payload == Payload::encoder_output;
}
/// The payloads that travel one way through a cut, with their sizes; a size of 0 does not cross it.
inline std::array<std::pair<Payload, std::int64_t>, 2> payloads_of(const BoundaryBytes& cut, bool forward) {
  if (forward)
    return {{{Payload::activation, cut.activation}, {Payload::encoder_output, cut.encoder_output}}};
  return {
      {{Payload::gradient, cut.gradient}, {Payload::encoder_output_gradient, cut.encoder_output_gradient}}};
}

/// " of subnet 7"; nothing for what belongs to a step.
std::string of_owner(const Action& action);
/// "receive activation of micro-batch 3 from rank 1"
std::string to_string(const Action& action);
/// An action on one line:
/// "17 [compute] forward of micro-batch 3, blocks 2..4 | tape 1 from 0 to 3 | after 12 16"
std::string line_of(const Action& action, int index);

}  // namespace mindpipe
