#include "program/action.h"

#include <fmt/core.h>

namespace mindpipe {

const char* name_of(Payload payload) {
  switch (payload) {
    case Payload::none:
      return "none";
    case Payload::activation:
      return "activation";
    case Payload::encoder_output:
      return "encoder output";
    case Payload::gradient:
      return "gradient";
    case Payload::encoder_output_gradient:
      return "encoder output gradient";
    case Payload::unit_gradient:
      return "unit gradient";
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
  if (action.queue == Queue::compute) return {};
  if (is_message(action))
    return {action.queue, action.peer, action.payload, action.kind == ActionKind::send, Members::none};
  return {action.queue, -1, Payload::none, false, action.group};
}

namespace {

std::string blocks_of(const Action& action) {
  return action.last == action.first + 1 ? fmt::format("block {}", action.first)
                                         : fmt::format("blocks {}..{}", action.first, action.last - 1);
}

std::string part_of(const Action& action) {
  return action.parts == 1 ? "" : fmt::format(", part {} of {}", action.part + 1, action.parts);
}

std::string message_text(const Action& action) {
  const char *name = name_of(action.kind), *direction = action.kind == ActionKind::send ? "to" : "from";
  if (action.payload == Payload::unit_gradient)
    return fmt::format("{} gradient of unit {} in block {} {} rank {}{}", name, action.unit, action.first,
                       direction, action.peer, part_of(action));
  return fmt::format("{} {} of micro-batch {} {} rank {}", name, name_of(action.payload), action.micro_batch,
                     direction, action.peer);
}

}  // namespace

std::string to_string(const Action& action) {
  const char* name = name_of(action.kind);
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
      return fmt::format("{} of micro-batch {}, {}", name, action.micro_batch, blocks_of(action));
    case ActionKind::send:
    case ActionKind::receive:
      return message_text(action);
    case ActionKind::reduce:
      return fmt::format("{} unit {} in block {} over {}{}", name, action.unit, action.first,
                         name_of(action.group), part_of(action));
    case ActionKind::gather:
      return fmt::format("{} unit {} over {}{}", name, action.unit, name_of(action.group), part_of(action));
    case ActionKind::update:
      return fmt::format("{} unit {}", name, action.unit);
    case ActionKind::sum_scalar:
      return fmt::format("{} over {}", name, name_of(action.group));
  }
  return name;
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
