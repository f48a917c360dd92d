#include "program/clock/clock.h"

#include <algorithm>
#include <functional>

namespace mindpipe {
namespace {

/// Sums and gathers of a rank take turns on the links of its data group; moves share what leaves it.
Clock::Way way_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::sum:
    case TaskKind::gather:
      return {TaskKind::sum};
    case TaskKind::move:
      return {TaskKind::move};
    default:
      return {task.kind, task.peer, task.with_forward};
  }
}

}  // namespace

Clock::Clock(int ranks) : running_(ranks, -1), idle_(ranks), touched_((ranks + 63) / 64), lines_of_(ranks) {}

int Clock::hold(const Task& task) {
  if (free_ < 0) {
    held_.push_back({.task = task});
    return static_cast<int>(held_.size()) - 1;
  }
  const int held = free_;
  free_ = held_[held].next;
  held_[held] = {.task = task};
  return held;
}

int Clock::line_of(int rank, const Way& way) const {
  for (const int line : lines_of_[rank])
    if (lines_[line].way == way) return line;
  return -1;
}

const Task* Clock::on_way(int rank, const Way& way) const {
  const int line = line_of(rank, way);
  return line < 0 ? nullptr : task_at(lines_[line].first);
}

void Clock::put(const Task& task) {
  const Way way = way_of(task);
  int number = line_of(task.rank, way);
  if (number < 0) {
    number = static_cast<int>(lines_.size());
    lines_.push_back({.way = way});
    lines_of_[task.rank].push_back(number);
  }
  const int held = hold(task);
  held_[held].line = number;
  Line& line = lines_[number];
  const bool is_free = line.first < 0;
  (is_free ? line.first : held_[line.last].next) = held;
  line.last = held;
  if (is_free) begin_at(held);
}

void Clock::begin_at(int held) {
  Task& task = held_[held].task;
  task.start = now_;
  task.end = now_ + task.lasts;
  ends_.push_back({task.end, ends_made_++, held});
  std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
  begun_.push_back(held);
}

bool Clock::ask(Source& source, int rank) {
  if (running_[rank] >= 0) return true;
  idle_[rank].look(now_);
  Task task;
  WaitReason why = WaitReason::input;
  switch (source.next(rank, *this, task, why)) {
    case Source::Answer::begins:
      task.rank = rank;
      task.waits = idle_[rank].begin(now_ + task.lasts);
      running_[rank] = hold(task);
      held_[running_[rank]].computes = true;
      begin_at(running_[rank]);
      return true;
    case Source::Answer::waits:
      idle_[rank].because(why);
      return true;
    case Source::Answer::unknown:
      idle_[rank].because(why);
      return false;
  }
  return false;
}

void Clock::end_first(Source& source) {
  std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
  const int held = ends_.back().held;
  ends_.pop_back();
  const Task task = held_[held].task;
  if (held_[held].computes) {
    running_[task.rank] = -1;
    touch(task.rank);
  }
  if (const int line = held_[held].line; line >= 0) {
    const int next = held_[held].next;
    lines_[line].first = next;
    if (next >= 0) begin_at(next);
  }
  held_[held].next = free_;
  free_ = held;
  source.ended(task, *this);
}

}  // namespace mindpipe
