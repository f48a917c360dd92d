#include "program/action.h"

#include <fmt/core.h>

namespace mindpipe {

namespace {

std::string blocks_of(const Action& action) {
  return action.last == action.first + 1 ? fmt::format("block {}", action.first)
                                         : fmt::format("blocks {}..{}", action.first, action.last - 1);
}

std::string part_of(const Action& action) {
  return action.parts == 1 ? "" : fmt::format(", part {} of {}", action.part + 1, action.parts);
}

std::string message_text(const Action& action) {
  const char* direction = sends(action) ? "to" : "from";
  if (is_move(action))
    return fmt::format("{} state of {}{} {} rank {}{}", action.kind,
                       action.units.size() == 1 ? fmt::format("unit {}", action.units.front())
                                                : fmt::format("{} units", action.units.size()),
                       of_owner(action), direction, action.peer, part_of(action));
  if (action.payload == Payload::unit_gradient)
    return fmt::format("{} gradient of unit {} in block {}{} {} rank {}{}", action.kind, action.unit,
                       action.first, of_owner(action), direction, action.peer, part_of(action));
  return fmt::format("{} {} of micro-batch {}{} {} rank {}", action.kind, action.payload, action.micro_batch,
                     of_owner(action), direction, action.peer);
}

}  // namespace

std::vector<Place> Program::places() const {
  std::vector<Place> all;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank)
    for (int index = 0; index < static_cast<int>(ranks[rank].size()); ++index) all.push_back({rank, index});
  return all;
}

QueueKey queue_of(const Action& action) {
  if (action.queue == Queue::compute) return {};
  if (is_message(action)) return {action.queue, action.peer, action.payload, sends(action), Members::none};
  return {action.queue, Action::none, Payload::none, false, action.group};
}

const char* name_of(Owner::Of of) {
  constexpr const char* names[Owner::kinds] = {"step", "subnet", "window", "batch", "drain"};
  return names[of];
}

std::string of_owner(const Action& action) {
  const auto& [of, number] = action.owner;
  if (of == Owner::drain) return fmt::format(" of the drain before subnet {}", number);
  return number == 0 ? "" : fmt::format(" of {} {}", name_of(of), number);
}

std::string to_string(const Action& action) {
  if (is_message(action)) return message_text(action);
  if (is_pass(action) || copies_segment(action))
    return fmt::format("{} of micro-batch {}{}, {}", action.kind, action.micro_batch, of_owner(action),
                       blocks_of(action));
  std::string text{name_of(action.kind)};
  if (names_unit(action)) text += fmt::format(" unit {}", action.unit);
  else if (shape_of<UnitTraits>(action) != nullptr)
    text += fmt::format(" of subnet {}, {}", action.owner.number, blocks_of(action));
  const auto* collective = shape_of<CollectiveTraits>(action);
  if (collective != nullptr && collective->of == CollectiveTraits::use)
    text += fmt::format(" in block {}", action.first);
  text += of_owner(action);
  if (collective != nullptr) text += fmt::format(" over {}{}", action.group, part_of(action));
  return text;
}

std::string line_of(const Action& action, int index) {
  std::string line = fmt::format("{} [{}] {}", index, action.queue, to_string(action));
  if (action.clears) line += ", clears";
  if (action.fold) line += fmt::format(", folds shard {}", action.shard);
  if (action.tape >= 0 || action.slab >= 0 || action.from_buffer >= 0 || action.to_buffer >= 0) {
    line += " |";
    if (action.tape >= 0) line += fmt::format(" tape {}", action.tape);
    if (action.waiting >= 0) line += fmt::format(" waiting {}", action.waiting);
    if (action.slab >= 0) line += fmt::format(" slab {}", action.slab);
    if (action.apart >= 0) line += fmt::format(" apart {}", action.apart);
    if (action.from_buffer >= 0) line += fmt::format(" from {}", action.from_buffer);
    if (action.to_buffer >= 0) line += fmt::format(" to {}", action.to_buffer);
    if (action.segment >= 0) line += fmt::format(" segment {}", action.segment);
    if (action.to_segment >= 0) line += fmt::format(" to segment {}", action.to_segment);
    if (action.host >= 0) line += fmt::format(" host {}", action.host);
  }
  if (action.bytes > 0) line += fmt::format(" | {} bytes", action.bytes);
  if (action.ticket >= 0) line += fmt::format(" | ticket {}", action.ticket);
  if (!action.after.empty()) line += " | after";
  for (int earlier : action.after) line += fmt::format(" {}", earlier);
  return line;
}

}  // namespace mindpipe
