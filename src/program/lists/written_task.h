#pragma once
#include "program/clock/task.h"

namespace mindpipe {

/// The beginning of an action of a task.
inline Action action_of_task(ActionKind kind, const Task& task) {
  Action action = action_of(kind);
  action.owner = task.owner;
  action.chunk = task.chunk;
  return action;
}

/// A pass, or one end of a message.
inline Action of_micro_batch(ActionKind kind, const Task& task, const Outline& outline) {
  Action action = action_of_task(kind, task);
  action.micro_batch = task.micro_batch;
  action.shard = task.micro_batch / outline.micro_batches_of_shard();
  action.first = task.first;
  action.last = task.last;
  return action;
}

/// The rank of a chunk in the lane of a rank; -1: there is no such chunk.
inline int rank_beside(int chunk, int rank, const Outline& outline) {
  if (chunk < 0 || chunk >= outline.all_chunks()) return -1;
  return outline.lane_of_rank(rank) * outline.stages + outline.rank_of(chunk);
}

/// Where the last part of a transfer is to stand that is written from `place` on; -1: it is written later.
inline std::int64_t last_place(const Task& task, std::int64_t place) {
  if (task.is_whole()) return place + task.parts - 1;
  return task.part + 1 == task.parts ? place : -1;
}

/// How long one of a message's two payloads takes where it meets no other.
inline std::int64_t payload_lasts(const Task& message, std::int64_t bytes, std::int64_t all, bool is_first) {
  if (message.load == Load{}) return message.lasts;
  const std::int64_t takes = message.load.takes * bytes / all;
  return message.load.latency +
         (is_first ? takes : message.load.takes - message.load.takes * (all - bytes) / all);
}

}  // namespace mindpipe
