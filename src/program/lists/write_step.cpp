#include "program/lists/write_step.h"

#include <algorithm>

#include "core/check.h"
#include "program/lists/list_writer.h"

namespace mindpipe {
namespace {

/// Numbers the boundary buffers of a rank, ring by ring; a hand-over has as many as are full at a time.
Rings rings_of(const StepTasks& tasks, const StepRooms& rooms, int rank) {
  std::map<RingKey, int> depths;
  for (const auto& [pair, ring] : tasks.rings) {
    const int depth = std::min<int>(rooms.rings.at(pair), ring.crossings.size());
    if (pair.from == rank) depths[{pair.to, pair.with_forward, true}] = depth;
    if (pair.to == rank) depths[{pair.from, pair.with_forward, false}] = depth;
  }
  for (const bool forward : {false, true})
    if (const int most = tasks.hand_overs[rank][forward]; most > 0) depths[{rank, forward, true}] = most;
  Rings rings;
  int buffers = 0;
  for (const auto& [key, depth] : depths)
    for (int k = 0; k < depth; ++k) rings[key].push_back(buffers++);
  return rings;
}

}  // namespace

WrittenStep write_step(const Outline& outline, StepOrder& step, const StepRooms& rooms) {
  const auto turns_of = [&](int rank) { return rooms.gradients.empty() ? nullptr : &rooms.gradients[rank]; };
  std::vector<ListWriter> writers;
  for (int rank = 0; rank < outline.stages; ++rank)
    writers.emplace_back(outline, rank, rings_of(step.tasks(), rooms, rank), turns_of(rank));
  std::int64_t ticket = 0;
  const std::int64_t time = step.run(rooms, [&](const Task& task) {
    if (task.kind == TaskKind::scalars)
      for (ListWriter& writer : writers) writer.add(task, ticket);
    else writers[task.rank].add(task, ticket);
    if (task.peer >= 0) writers[task.peer].add(task, ticket);
    if (!is_pass(task.kind) && !is_copy(task.kind) && task.kind != TaskKind::update) ++ticket;
  });
  MP_CHECK(time >= 0, "a step stands still in the rooms that were chosen for it");
  WrittenStep written;
  for (int rank = 0; rank < outline.stages; ++rank) {
    written.program.ranks.push_back(writers[rank].take().actions);
    written.placement.ranks.push_back(memory_of(written.program.ranks.back(), outline, rank, turns_of(rank)));
  }
  return written;
}

}  // namespace mindpipe
