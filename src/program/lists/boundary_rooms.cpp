#include "program/lists/boundary_rooms.h"

#include <utility>

#include "program/lists/written_task.h"

namespace mindpipe {

BoundaryRooms::BoundaryRooms(const Outline& outline, int rank, const Rings& rings)
    : outline_(outline), rank_(rank) {
  for (const auto& [key, numbers] : rings) rings_.try_emplace(key, numbers, key.peer == rank);
}

void BoundaryRooms::cross(const Task& task, int way, const Ledger& ledger, std::int64_t place,
                          Action& action) {
  const int from = rank_beside(task.chunk - way, rank_, outline_),
            to = rank_beside(task.chunk + way, rank_, outline_);
  const bool is_last = !task.goes_on;
  BufferRing* arrived = nullptr;
  if (task.owner.of == Owner::subnet) {
    Room& slot = room_at(slots_, task.slot);
    if (from >= 0) ledger.read(slot, place, action);
    else ledger.write(slot, place, action);
  } else if (from >= 0) {
    arrived = &ring(from, way > 0, false);
    action.from_buffer = arrived->oldest().number;
    ledger.read(arrived->oldest().room, place, action);
  }
  if (to >= 0 && is_last) {
    Buffer& out = ring(to, way > 0, true).fill();
    action.to_buffer = out.number;
    ledger.write(out.room, place, action);
  }
  if (arrived != nullptr && is_last) arrived->empty_oldest();
}

Room& BoundaryRooms::leave(const Task& task, Action& send) {
  BufferRing& buffers = ring(task.peer, task.with_forward, true);
  Buffer& buffer = task.turn == Task::next_turn ? buffers.oldest() : buffers.at(task.turn);
  if (task.turn == Task::next_turn) buffers.empty_oldest();
  send.peer = task.peer;
  send.from_buffer = buffer.number;
  return buffer.room;
}

Room& BoundaryRooms::arrive(const Task& task, Action& receive, bool& is_first) {
  receive.peer = task.rank;
  receive.chunk += task.with_forward ? 1 : -1;
  receive.tape = task.slot;
  if (task.slot >= 0) return room_at(slots_, task.slot);
  BufferRing& buffers = ring(task.rank, task.with_forward, false);
  Buffer& buffer = task.turn == Task::next_turn ? buffers.fill() : buffers.at(task.turn);
  is_first = task.turn == Task::next_turn || std::exchange(buffer.turn, task.turn) != task.turn;
  receive.to_buffer = buffer.number;
  return buffer.room;
}

}  // namespace mindpipe
