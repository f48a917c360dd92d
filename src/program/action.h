#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace mindpipe {

/// What one entry of a rank's list does. Those after `sum_scalar` belong to swapping, moving and checkpoints.
enum class ActionKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  update,
  send,
  receive,
  reduce,
  gather,
  move,
  sum_scalar,
  fetch,
  evict,
  stash,
  unstash,
  load,
  snapshot,
};
/// `channel`: one queue for each (peer, direction, payload). `group`: one queue for each group.
enum class Queue : std::uint8_t { compute, copy_in, copy_out, channel, group };
/// What a message is. Activation and memory (the encoder's output) travel with the forwards, their gradients
/// with the backwards.
enum class Payload : std::uint8_t { none, activation, memory, gradient, memory_gradient, unit, scalar };
/// Who takes part in a collective: the ranks that differ from this one only on the data axis, or all of the
/// grid.
enum class Members : std::uint8_t { none, data, grid };

const char* name_of(ActionKind kind);
const char* name_of(Queue queue);
const char* name_of(Payload payload);
const char* name_of(Members group);

/// One entry of a rank's list: plain data.
///
/// What an executor must know:
/// - A list is the step of one pipeline rank; ranks that differ only in their tensor or data coordinate run
/// equal lists. `shard` is
///   counted within the rank (the logical shard is data coordinate x shards + shard), `micro_batch` within
///   the rank's step (0 .. m-1, shard after shard, so its place in the shard is micro_batch mod (m /
///   shards)).
/// - Keep one cursor for each queue (`queue_of`). The head of a queue starts when the action before it in
/// that queue has ended and
///   all of its `after` have ended; never choose otherwise. A step has ended when all queues are empty.
/// - forward, backward: blocks [first, last) of chunk `chunk` on micro-batch `micro_batch`, with the tape of
/// arena `slot`. What
///   enters is in boundary buffer `from_slot`, what leaves goes to boundary buffer `to_slot` (-1: the batch,
///   or the loss). A buffer holds all payloads of one boundary; when neighbouring chunks are on one rank the
///   same buffer is written by one and read by the other, and there are no messages.
/// - The backward of the step's last micro-batch comes in pieces, one for each block, one directly after the
/// other: all name `from_slot`,
///   which the first one reads (it may be overwritten until the last has ended); the last one names and
///   writes `to_slot`; what passes between the pieces is the executor's.
/// - A forward's tape fills `slot` until its last backward has ended; in an evaluation (no backwards) until
/// the forward itself has ended.
/// - With backward_input / backward_weight, the tape keeps weight gradients until backward_weight; only then
/// is `slot` free.
/// - `clears`: the first to add to the gradients of its blocks, which are zeroed before.
/// - `fold`: after this action the gradients of its blocks hold all micro-batches of `shard`: add them to the
/// binary counter.
/// - send: buffer `slot` to pipeline rank `peer`; receive: from `peer` into buffer `to_slot`. `first` is the
/// block that the cut
///   precedes. With payload `unit` (a tied table): the gradient of the use in block `first`, reduced over
///   data; without buffers: the runtime owns one place for each use, and after the last of these receives
///   adds all uses in model order (uses on one rank need no message).
/// - reduce: sum the gradients of blocks [first, last) over group `data` (a sum_scatter when the optimizer is
/// sharded). When gradients
///   are sharded, the accumulators of its block lie in slab `slot`, and this rank's part of the sum moves out
///   to place `to_slot`, or stays where it is until the update (-1) because nobody else comes to the slab.
/// - Bulk transfers (reduce, gather, messages of payload `unit`) come in `parts` of at most 4 MiB, each an
/// entry of its own: part k is the
///   k-th share of every rank's piece. They end in order; an executor may begin the one behind a queue's head
///   ahead of time, when its `after` have ended, and begins none while a higher class has traffic on its way.
///   sum_scalar: loss, valid tokens and the gradient's squares over group `grid`. update: blocks [first,
///   last), own part only when sharded; then gather their values over `data`. A group of one does nothing.
/// - `ticket`: equal on all participants and ascending in every list; whoever has no tags (NCCL) starts
/// communication in this order.
struct Action {
  ActionKind kind = ActionKind::forward;
  Queue queue = Queue::compute;
  int step = 0, subnet = 0, shard = 0, micro_batch = -1;
  int chunk = -1, first = 0, last = 0;
  int peer = -1;
  Members group = Members::none;
  Payload payload = Payload::none;
  int part = 0, parts = 1;
  int version = 0;  ///< of the unit that is read or made
  int slot = -1;    ///< arena (compute), boundary buffer (send) or gradient slab (reduce)
  int from_slot = -1, to_slot = -1;
  bool clears = false, fold = false;
  int sums = 0;  ///< inside a pass: how many times the ranks that share its products meet
  std::int64_t bytes =
      0;  ///< what this rank sends (in a pass: in those sums) or receives, for the ledger and the simulator
  std::int64_t ticket = -1;
  std::vector<int> after;  ///< earlier entries of this list that must have ended, on other queues

  bool operator==(const Action&) const = default;
};

/// A step, written down: `ranks[i]` is the list of pipeline rank i.
struct Program {
  std::vector<std::vector<Action>> ranks;
};

/// Names one queue of a rank.
struct QueueKey {
  Queue queue = Queue::compute;
  int peer = -1;
  Payload payload = Payload::none;
  bool outgoing = false;
  Members group = Members::none;
  auto operator<=>(const QueueKey&) const = default;
};
QueueKey queue_of(const Action& action);

inline bool is_message(const Action& action) {
  return action.kind == ActionKind::send || action.kind == ActionKind::receive;
}
inline bool is_collective(const Action& action) {
  return action.kind == ActionKind::reduce || action.kind == ActionKind::gather ||
         action.kind == ActionKind::sum_scalar;
}
inline bool is_communication(const Action& action) { return is_message(action) || is_collective(action); }
inline bool is_backward(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
}

/// "receive activation of micro-batch 3 from rank 1"
std::string to_string(const Action& action);
/// All of it on one line: "17 [compute] forward of micro-batch 3, blocks 2..4 | slot 1, from 0, to 3 | after
/// 12 16"
std::string line_of(const Action& action, int index);

}  // namespace mindpipe
