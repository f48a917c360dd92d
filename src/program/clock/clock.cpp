#include "program/clock/clock.h"

#include <algorithm>

#include "core/bulk_parts.h"

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
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::backward_input:
    case TaskKind::backward_weight:
    case TaskKind::update:
    case TaskKind::message:
    case TaskKind::exchange:
    case TaskKind::scalars:
    case TaskKind::fetch:
    case TaskKind::evict:
    case TaskKind::stash:
    case TaskKind::unstash:
      break;
  }
  return {task.kind, task.peer, task.with_forward};
}

/// An executor looks at the sums and gathers of a rank in their order, and lets several parts be under way.
bool is_of_group(TaskKind kind) { return kind == TaskKind::sum || kind == TaskKind::gather; }
int most_under_way(const Clock::Way& way) { return is_of_group(way.kind) ? parts_under_way : 1; }

/// Parts have the latency of each, turns of a pass a share of its own.
std::int64_t latency_of(const HeldTask& held) {
  const Task& task = held.task;
  return is_pass(task.kind) ? of_turn(held.over, held.turns, task.load.latency) : task.load.latency;
}

}  // namespace

Clock::Clock(int ranks, const std::optional<Unseen>& unseen)
    : events_(unseen), running_(ranks, -1), idle_(ranks), touched_((ranks + 63) / 64), lines_(ranks) {}

const Task* Clock::on_way(int rank, const Way& way) const {
  const int line = lines_.of(rank, way);
  return line < 0 ? nullptr : held_.task_at(lines_[line].first);
}

std::int64_t Clock::arrives(int rank, const Way& way) const {
  const int held = lines_[lines_.of(rank, way)].first;
  const Task& task = held_[held].task;
  if (task.load.takes == 0 || held_[held].has_left) return task.end;
  return events_.ports().expected(rank, task.load.level, class_of(task.kind), held, now_) + task.load.latency;
}

void Clock::put(const Task& task) {
  const int number = lines_.made_for(task.rank, way_of(task)), held = held_.hold(task);
  held_[held].line = number;
  held_[held].turns = task.is_whole() ? task.parts : 1;
  TaskLines::Line& line = lines_[number];
  (line.first < 0 ? line.first : held_[line.last].next) = held;
  line.last = held;
  if (line.next < 0) line.next = held;
  begin_parts(line);
}

void Clock::begin_at(int held) {
  Task& task = held_[held].task;
  task.start = now_;
  task.end = now_ + task.lasts;
  begun_.push_back(held);
  if (!is_pass(task.kind)) return send(held, 0);
  if (task.load.takes == 0) return end_at(task.end, held);
  held_[held].turns = task.load.turns(task.load.takes);
  compute(held);
}

/// Lets parts of a line begin until as many are under way as may be.
void Clock::begin_parts(TaskLines::Line& line) {
  const int most = most_under_way(line.way);
  while (line.under_way < most && line.next >= 0) {
    const int held = line.next, part = line.part++;
    ++line.under_way;
    if (line.part == held_[held].turns) {
      line.next = held_[held].next;
      line.part = 0;
    }
    if (part == 0) begin_at(held);
    else send(held, part);
  }
}

/// One part of a transfer, in its turns, or one turn of a pass's sums, goes to the port; what takes no time
/// there, and all that is no transfer, lasts as long as said.
void Clock::send(int held, int part) {
  const Task& task = held_[held].task;
  const int turns = held_[held].turns;
  if (task.load == Load{}) return end_at(now_ + of_turn(part, turns, task.lasts), held);
  const std::int64_t takes = of_turn(part, turns, task.load.takes);
  if (takes == 0) return end_at(now_ + latency_of(held_[held]), held);
  events_.offer({.traffic = class_of(task.kind),
                 .level = task.load.level,
                 .from = task.rank,
                 .to = task.peer < 0 ? task.rank : task.peer,
                 .takes = takes,
                 .number = held},
                now_, is_pass(task.kind) ? 1 : task.load.turns(takes));
}

/// A pass computes what stands before its next turn of sums.
void Clock::compute(int held) {
  held_[held].travels = false;
  const Task& pass = held_[held].task;
  end_at(now_ + pass.load.before_turn(held_[held].over, held_[held].turns, pass.lasts), held);
}

/// Sums and gathers of a rank end in the order in which they began.
void Clock::end_at(std::int64_t time, int held) {
  if (const Task& task = held_[held].task; is_of_group(task.kind)) {
    if (task.rank >= static_cast<int>(last_sum_.size())) last_sum_.resize(task.rank + 1, 0);
    time = last_sum_[task.rank] = std::max(time, last_sum_[task.rank]);
  }
  events_.put(time, held);
}

void Clock::leave_port(Ports::Left left) {
  HeldTask& held = held_[left.transfer.number];
  held.at_port.add(left);
  if (sees_ports_) sees_ports_(left);
  if (left.transfer.goes_on) return;
  const std::int64_t end = held.at_port.arrived + latency_of(held);
  if (!is_pass(held.task.kind)) {
    held.has_left = true;
    held.task.end = end;
  }
  end_at(end, left.transfer.number);
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
      running_[rank] = held_.hold(task);
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

/// With its last turn a task ends.
void Clock::end_turn(int number, Source& source) {
  HeldTask& held = held_[number];
  const bool has_sums = is_pass(held.task.kind) && held.task.load.takes > 0;
  if (has_sums && !held.travels) {
    held.travels = true;
    return send(number, held.over);
  }
  const int line = held.line;
  if (line >= 0) --lines_[line].under_way;
  if (++held.over < held.turns) return has_sums ? compute(number) : begin_parts(lines_[line]);
  Task task = held.task;
  task.end = now_;
  if (held.computes) {
    idle_[task.rank].end(now_);
    running_[task.rank] = -1;
    touch(task.rank);
  }
  if (line >= 0) {
    lines_[line].first = held.next;
    begin_parts(lines_[line]);
  }
  held_.give_back(number);
  if (sees_ends_) sees_ends_(task);
  source.ended(task, *this);
}

}  // namespace mindpipe
