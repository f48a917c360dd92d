#include "program/action.h"

#include <fmt/core.h>

namespace mindpipe {

const char* name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::backward_input:
      return "backward_input";
    case ActionKind::backward_weight:
      return "backward_weight";
    case ActionKind::update:
      return "update";
    case ActionKind::send:
      return "send";
    case ActionKind::receive:
      return "receive";
    case ActionKind::reduce:
      return "reduce";
    case ActionKind::gather:
      return "gather";
    case ActionKind::move:
      return "move";
    case ActionKind::sum_scalar:
      return "sum_scalar";
    case ActionKind::fetch:
      return "fetch";
    case ActionKind::evict:
      return "evict";
    case ActionKind::stash:
      return "stash";
    case ActionKind::unstash:
      return "unstash";
    case ActionKind::load:
      return "load";
    case ActionKind::snapshot:
      return "snapshot";
  }
  return "?";
}

const char* name_of(Queue queue) {
  switch (queue) {
    case Queue::compute:
      return "compute";
    case Queue::copy_in:
      return "copy_in";
    case Queue::copy_out:
      return "copy_out";
    case Queue::channel:
      return "channel";
    case Queue::group:
      return "group";
  }
  return "?";
}

const char* name_of(Payload payload) {
  switch (payload) {
    case Payload::none:
      return "none";
    case Payload::activation:
      return "activation";
    case Payload::memory:
      return "memory";
    case Payload::gradient:
      return "gradient";
    case Payload::memory_gradient:
      return "memory gradient";
    case Payload::unit:
      return "unit";
    case Payload::scalar:
      return "scalar";
  }
  return "?";
}

const char* name_of(Members group) {
  switch (group) {
    case Members::none:
      return "none";
    case Members::data:
      return "data";
    case Members::grid:
      return "grid";
  }
  return "?";
}

QueueKey queue_of(const Action& action) {
  QueueKey key;
  key.queue = action.queue;
  if (action.queue == Queue::channel) {
    key.peer = action.peer;
    key.payload = action.payload;
    key.outgoing = action.kind == ActionKind::send;
  }
  if (action.queue == Queue::group) key.group = action.group;
  return key;
}

namespace {

std::string blocks_of(const Action& action) {
  return action.last == action.first + 1 ? fmt::format("block {}", action.first)
                                         : fmt::format("blocks {}..{}", action.first, action.last - 1);
}

std::string part_of(const Action& action) {
  return action.parts == 1 ? "" : fmt::format(", part {} of {}", action.part + 1, action.parts);
}

}  // namespace

std::string to_string(const Action& action) {
  const std::string name = name_of(action.kind);
  if (is_message(action)) {
    const char* direction = action.kind == ActionKind::send ? "to" : "from";
    if (action.payload == Payload::unit)
      return fmt::format("{} gradient of the tied table in block {} {} rank {}{}", name, action.first,
                         direction, action.peer, part_of(action));
    return fmt::format("{} {} of micro-batch {} {} rank {}", name, name_of(action.payload),
                       action.micro_batch, direction, action.peer);
  }
  switch (action.kind) {
    case ActionKind::sum_scalar:
      return fmt::format("{} over {}", name, name_of(action.group));
    case ActionKind::reduce:
    case ActionKind::gather:
      return fmt::format("{} {} over {}{}", name, blocks_of(action), name_of(action.group), part_of(action));
    case ActionKind::update:
      return fmt::format("{} {}", name, blocks_of(action));
    default:
      return fmt::format("{} of micro-batch {}, {}", name, action.micro_batch, blocks_of(action));
  }
}

std::string line_of(const Action& action, int index) {
  std::string line = fmt::format("{} [{}] {}", index, name_of(action.queue), to_string(action));
  if (action.clears) line += ", clears";
  if (action.fold) line += fmt::format(", folds shard {}", action.shard);
  if (action.slot >= 0 || action.from_slot >= 0 || action.to_slot >= 0) {
    line += " |";
    if (action.slot >= 0) line += fmt::format(" slot {}", action.slot);
    if (action.from_slot >= 0) line += fmt::format(" from {}", action.from_slot);
    if (action.to_slot >= 0) line += fmt::format(" to {}", action.to_slot);
  }
  if (action.bytes > 0) line += fmt::format(" | {} bytes", action.bytes);
  if (action.ticket >= 0) line += fmt::format(" | ticket {}", action.ticket);
  if (!action.after.empty()) line += " | after";
  for (int earlier : action.after) line += fmt::format(" {}", earlier);
  return line;
}

}  // namespace mindpipe
