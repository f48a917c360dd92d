#include "program/check/room_book.h"

#include <algorithm>

namespace mindpipe {

void RoomBook::see(const PassBook::Blocks* blocks) {
  const Action& action = reading_.action();
  if (crosses_cut(action)) message();
  else if (copies_segment(action)) copy();
  else if (is_pass(action) && blocks != nullptr) pass(*blocks);
}

/// The tape says where the segment lies that is copied.
void RoomBook::copy() {
  const Action& action = reading_.action();
  const Content tape{action.owner.number, action.micro_batch, action.chunk};
  const Arena* there = arena();
  if (there != nullptr && (!there->is_open || there->now != tape))
    reading_.wrong("looks for its tape in arena {}, which does not hold it", action.tape);
}

RoomBook::Content RoomBook::crossing(int cut, bool with_forward) const {
  const Action& action = reading_.action();
  return {action.owner.number, action.micro_batch, cut,
          with_forward ? Content::forwards : Content::backwards};
}

void RoomBook::message() {
  const Action& action = reading_.action();
  const bool with_forward = travels_forward(action.payload);
  if (sends(action)) read(action.from_buffer, crossing(action.first, with_forward));
  else if (!arrives_in_arenas()) write(action.to_buffer, crossing(action.first, with_forward), 1);
  else if (Arena* there = arena()) arrive(*there);
}

void RoomBook::pass(const PassBook::Blocks& blocks) {
  const Action& action = reading_.action();
  const Outline& outline = reading_.outline;
  const bool forward = is_forward(action);
  if (forward || is_backward(action)) {
    const int before = action.chunk + (forward ? -1 : 1), behind = action.chunk + (forward ? 1 : -1);
    const auto exists = [&](int chunk) { return chunk >= 0 && chunk < outline.all_chunks(); };
    const auto messages = [&](int chunk, int cut) {
      if (reading_.rank_of(chunk) == reading_.rank) return 1;
      const auto payloads = payloads_of(outline.cuts[cut], forward);
      return static_cast<int>(
          std::count_if(payloads.begin(), payloads.end(), [](const auto& one) { return one.second > 0; }));
    };
    const int from = forward ? blocks.first : blocks.last, to = forward ? blocks.last : blocks.first;
    if (exists(before) && !arrives_in_arenas()) {
      const Content content = crossing(from, forward);
      const int number = action.from_buffer;
      read(number, content);
      if (number >= 0 && number < std::ssize(buffers_) && buffers_[number].now == content &&
          std::ssize(buffers_[number].writers) < messages(before, from))
        reading_.wrong("finds but a part of its input in buffer {}", number);
    } else if (action.from_buffer != Action::none) {
      reading_.wrong("reads buffer {}, but takes nothing in from one", action.from_buffer);
    }
    if (exists(behind) && (forward ? action.last == blocks.last : action.first == blocks.first))
      write(action.to_buffer, crossing(to, forward), messages(behind, to));
    else if (action.to_buffer != Action::none)
      reading_.wrong("writes buffer {}, but leaves nothing for a neighbour", action.to_buffer);
  }
  if (Arena* there = arena()) pass_in(*there, blocks);
  if (is_half(action)) wait_in(blocks);
}

/// The first half of a backward takes an arena for what its products read, which the second gives back.
void RoomBook::wait_in(const PassBook::Blocks& blocks) {
  const Action& action = reading_.action();
  if (action.waiting < 0) return reading_.wrong("has no arena for what waits");
  if (action.waiting >= static_cast<int>(waiting_.size())) waiting_.resize(action.waiting + 1);
  Content& there = waiting_[action.waiting];
  const Content tape{action.owner.number, action.micro_batch, action.chunk};
  const bool takes = is_backward(action) && action.last == blocks.last;
  if (takes && there.micro_batch >= 0)
    reading_.wrong("puts products off into arena {}, where those of micro-batch {}, chunk {}, still wait",
                   action.waiting, there.micro_batch, there.place);
  else if (!takes && there != tape)
    reading_.wrong("looks for its products in arena {}, where others wait", action.waiting);
  if (takes) there = tape;
  else if (!is_backward(action) && action.first == blocks.first) there = {};
}

/// The buffer of a number. Those of subnets are two for each way.
RoomBook::Buffer* RoomBook::buffer(int number, bool with_forward, const char* purpose) {
  const int first = arrives_in_arenas() && !with_forward ? 2 : 0;
  if (number < first || (arrives_in_arenas() && number > first + 1)) {
    reading_.wrong("has no buffer to {}", purpose);
    return nullptr;
  }
  if (number >= static_cast<int>(buffers_.size())) buffers_.resize(number + 1);
  return &buffers_[number];
}

void RoomBook::write(int number, const Content& content, int due) {
  Buffer* there = buffer(number, content.way == Content::forwards, "write to");
  if (there == nullptr) return;
  if (there->now != content) {
    if (static_cast<int>(there->readers.size()) < there->due)
      reading_.wrong(
          "writes buffer {}, of which nobody has read or sent all (micro-batch {} at the cut before block "
          "{})",
          number, there->now.micro_batch, there->now.place);
    // Each reader has waited for all who wrote.
    there->before = std::exchange(there->readers, {});
    there->writers.clear();
    there->now = content;
    there->due = due;
  }
  for (const ListEntry& user : there->before)
    if (!reading_.has_ended(user))
      reading_.wrong("writes buffer {} while {} may still use it", number, reading_.text_of(user.place));
  there->writers.push_back(reading_.here());
}

void RoomBook::read(int number, const Content& content) {
  Buffer* there = buffer(number, content.way == Content::forwards, "read from");
  if (there == nullptr) return;
  if (there->now != content)
    return reading_.wrong("finds something else in buffer {} (micro-batch {} at the cut before block {})",
                          number, there->now.micro_batch, there->now.place);
  for (const ListEntry& writer : there->writers)
    if (!reading_.has_ended(writer))
      reading_.wrong("reads buffer {} before action {} has filled it", number, writer.place);
  there->readers.push_back(reading_.here());
}

/// Whether anything comes with the forwards through the cut before a block.
bool RoomBook::arrives(int cut) const {
  if (cut == 0) return false;
  const auto payloads = payloads_of(reading_.outline.cuts[cut], true);
  return std::any_of(payloads.begin(), payloads.end(), [](const auto& one) { return one.second > 0; });
}

RoomBook::Arena* RoomBook::arena() {
  const int number = reading_.action().tape;
  if (number < 0) {
    reading_.wrong("has no arena");
    return nullptr;
  }
  if (number >= static_cast<int>(arenas_.size())) arenas_.resize(number + 1);
  return &arenas_[number];
}

/// The first that a micro-batch has in an arena, or more of what arrives for its forward.
void RoomBook::take(Arena& arena, const char* what) {
  const Action& action = reading_.action();
  const Content tape{action.owner.number, action.micro_batch, action.chunk};
  if (arena.is_open && arena.now != tape)
    reading_.wrong("{} arena {}, which still holds the tape of micro-batch {}, chunk {}", what, action.tape,
                   arena.now.micro_batch, arena.now.place);
  else if (arena.is_open && arena.forward.exists())
    reading_.wrong("{} arena {}, whose forward has run", what, action.tape);
  if (arena.before.exists() && !reading_.has_ended(arena.before))
    reading_.wrong("{} arena {} while {} may still read it", what, action.tape,
                   reading_.text_of(arena.before.place));
  arena.now = tape;
  arena.is_open = true;
}

void RoomBook::arrive(Arena& arena) {
  const Action& action = reading_.action();
  if (travels_forward(action.payload)) return take(arena, "arrives in");
  const Content tape{action.owner.number, action.micro_batch, action.chunk};
  if (!arena.is_open || arena.now != tape)
    reading_.wrong("looks for its tape in arena {}, which does not hold it", action.tape);
  else if (!reading_.has_ended(arena.forward)) reading_.wrong("may arrive before its forward has ended");
}

void RoomBook::pass_in(Arena& arena, const PassBook::Blocks& blocks) {
  const Action& action = reading_.action();
  const Content tape{action.owner.number, action.micro_batch, action.chunk};
  const bool is_over = reading_.outline.training ? makes_gradients(action) && action.first == blocks.first
                                                 : is_forward(action);
  const bool begins = is_forward(action) && action.first == blocks.first;
  const bool is_there = arena.is_open && arena.now == tape;
  if (begins) {
    if (arrives_in_arenas() && arrives(blocks.first) && !is_there)
      reading_.wrong("looks for its input in arena {}, where it has not arrived", action.tape);
    take(arena, "writes");
    arena.forward = reading_.here();
  } else if (!is_there || !arena.forward.exists()) {
    reading_.wrong("looks for its tape in arena {}, which does not hold it", action.tape);
  }
  if (is_over) arena = {{}, false, {}, reading_.here()};
}

void RoomBook::end() {
  for (int number = 0; number < static_cast<int>(arenas_.size()); ++number)
    if (const Arena& arena = arenas_[number]; arena.is_open)
      reading_.missing("arena {} still holds the tape of micro-batch {}, chunk {}", number,
                       arena.now.micro_batch, arena.now.place);
}

}  // namespace mindpipe
