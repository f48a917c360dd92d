#include "program/check/transfer_book.h"

#include <algorithm>

namespace mindpipe {

void TransferBook::expect(std::span<const Communication> sequence) {
  has_sequence_ = true;
  for (const Communication& one : sequence)
    if (one.from == reading_.rank || one.to == reading_.rank) due_.push_back(one);
}

/// What was left out before the action is named, the action itself where nobody else knows of it.
void TransferBook::compare() {
  const Action& action = reading_.action();
  while (!due_.empty() && due_.front().ticket < action.ticket) {
    reading_.wrong("comes before {}", due_.front().text());
    due_.pop_front();
  }
  if (due_.empty() || due_.front().ticket != action.ticket)
    return reading_.wrong("is none that other ranks know of (ticket {})", action.ticket);
  if (!due_.front().is_met_by(action, reading_.rank)) reading_.wrong("is not {}", due_.front().text());
  due_.pop_front();
}

void TransferBook::end_of_sequence() {
  for (const Communication& one : due_) reading_.missing("{} is left out", one.text());
  due_.clear();
}

void TransferBook::see() {
  const Action& action = reading_.action();
  if (!is_communication(action)) return;
  if (action.ticket <= newest_ticket_)
    reading_.wrong("ticket {} comes after ticket {} in the list (they must ascend)", action.ticket,
                   newest_ticket_);
  newest_ticket_ = std::max(newest_ticket_, action.ticket);
  if (has_sequence_) compare();
  if (action.queue != Queue::bulk) return;
  Line& line = lines_[queue_of(action)];
  const Whole whole{action.owner.number, action.unit, action.first, action.parts, action.units};
  if (action.part != line.next) reading_.wrong("comes out of turn (part {} is due)", line.next + 1);
  else if (action.part > 0 && whole != line.whole)
    reading_.wrong("comes between the parts of something else (part {} is due)", line.next + 1);
  line.next = (action.part + 1) % action.parts;
  if (line.next > 0) line.whole = whole;
}

void TransferBook::end() {
  for (const auto& [queue, line] : lines_)
    if (line.next > 0)
      reading_.missing("part {} of {} in queue {} is missing", line.next + 1,
                       queue.peer < 0 ? "a sum or gather" : fmt::format("a message with rank {}", queue.peer),
                       queue.queue);
}

}  // namespace mindpipe
