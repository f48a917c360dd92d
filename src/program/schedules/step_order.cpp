#include "program/schedules/step_order.h"

#include <algorithm>

#include "core/bulk_parts.h"

namespace mindpipe {

StepOrder::StepOrder(const Outline& outline, const PriceList& prices, const Order& order)
    : tasks_(tasks_of_step(outline, prices, order)), lines_(tasks_.lines.size()) {
  for (const auto& line : tasks_.lines) count_ += static_cast<int>(line.size());
  watch();
}

void StepOrder::watch() {
  const auto watches = [&](int line, int needed) { lines_[needed].watchers.push_back(line); };
  for (int line = 0; line < static_cast<int>(lines_.size()); ++line) {
    for (const StepItem& item : tasks_.lines[line])
      for (const StepNeed& need : item.needs)
        if (need.line >= 0 &&
            (lines_[need.line].watchers.empty() || lines_[need.line].watchers.back() != line))
          watches(line, need.line);
  }
  for (int rank = 0; rank < tasks_.stages(); ++rank) watches(rank, tasks_.sums_of(rank));
  for (const auto& [pair, ring] : tasks_.rings)
    for (const int line : ring.lines) {
      if (line < 0) continue;
      watches(line, pair.to);
      watches(pair.from, line);
    }
  for (Line& line : lines_) {
    std::sort(line.watchers.begin(), line.watchers.end());
    line.watchers.erase(std::unique(line.watchers.begin(), line.watchers.end()), line.watchers.end());
  }
}

void StepOrder::begin(const StepRooms& rooms) {
  candidates_.clear();
  ended_ = ended_before_moves_ = 0;
  for (int line = 0; line < static_cast<int>(lines_.size()); ++line) {
    lines_[line].begun = lines_[line].ended = 0;
    lines_[line].is_candidate = false;
    make_candidate(line);
  }
  for (const auto& [pair, ring] : tasks_.rings) {
    const auto depth = rooms.rings.find(pair);
    place_messages(pair, ring,
                   depth == rooms.rings.end() ? static_cast<int>(ring.crossings.size()) : depth->second);
  }
  for (int rank = 0; rank < static_cast<int>(rooms.gradients.size()); ++rank)
    place_gradients(rank, rooms.gradients[rank]);
}

/// A backward that is the first in a slab waits for the sum of who was there.
void StepOrder::place_gradients(int rank, const GradientTurns& turns) {
  for (StepItem& item : tasks_.lines[rank])
    if (item.task.kind != TaskKind::forward) item.needs[StepItem::slab] = {};
  std::vector<int> sums{0};  // items that have ended when so many sums have
  int apart = 0, place = 0;
  for (StepItem& item : tasks_.lines[tasks_.sums_of(rank)]) {
    ++place;
    Task& task = item.task;
    if (task.kind != TaskKind::sum) continue;
    const GradientPlace& there = turns.places.at({task.unit, task.block});
    task.slab = there.slab;
    task.apart = there.moves_out ? apart : -1;
    if (task.part + 1 < task.parts) continue;
    apart += there.moves_out ? 1 : 0;
    sums.push_back(place);
  }
  for (const GradientTurns::Wait& wait : turns.waits)
    tasks_.lines[rank][wait.pass].needs[StepItem::slab] = {tasks_.sums_of(rank), sums[wait.sums]};
}

/// What is `depth` turns behind goes where a crossing was: its writer waits for the messages, its messages
/// wait for the reader.
void StepOrder::place_messages(const RingPair& pair, const StepRing& ring, int depth) {
  for (int turn = 0; turn < static_cast<int>(ring.crossings.size()); ++turn) {
    const StepCrossing& here = ring.crossings[turn];
    const StepCrossing* before = turn < depth ? nullptr : &ring.crossings[turn - depth];
    for (int k = 0; k < 2; ++k) {
      tasks_.lines[pair.from][here.writer].needs[StepItem::output + k] =
          before == nullptr ? StepNeed{} : StepNeed{ring.lines[k], before->messages[k] + 1};
      if (here.messages[k] < 0) continue;
      tasks_.lines[ring.lines[k]][here.messages[k]].needs[StepItem::place] =
          before == nullptr ? StepNeed{} : StepNeed{pair.to, before->last_reader + 1};
    }
  }
}

void StepOrder::make_candidate(int line) {
  if (lines_[line].is_candidate) return;
  lines_[line].is_candidate = true;
  candidates_.push_back(line);
}

bool StepOrder::may_begin(int line) const {
  const Line& here = lines_[line];
  if (here.begun - here.ended >= most_under_way(line) ||
      here.begun == static_cast<int>(tasks_.lines[line].size()))
    return false;
  if (line == tasks_.scalars()) return ended_before_moves_ == tasks_.before_scalars;
  for (const StepNeed& need : head(line).needs)
    if (need.line >= 0 && lines_[need.line].ended < need.count) return false;
  return true;
}

/// What may begin at one moment does so in turn: computation, then by class, from, to, and what was made
/// first.
std::tuple<int, int, int, int, Payload> StepOrder::turn(int line) const {
  const StepItem& item = head(line);
  const Task& task = item.task;
  if (line < tasks_.stages()) return {0, task.rank, 0, 0, Payload::none};
  return {1 + static_cast<int>(class_of(task.kind)), task.rank, task.peer, item.needs[StepItem::work].count,
          task.payload};
}

bool StepOrder::open(Clock& clock) {
  while (!candidates_.empty()) begin_candidates(clock);
  return true;
}

/// Lets begin what may; the next sum of a rank may then follow.
void StepOrder::begin_candidates(Clock& clock) {
  std::vector<int> lines;
  lines.swap(candidates_);
  for (const int line : lines) lines_[line].is_candidate = false;
  std::erase_if(lines, [&](int line) { return !may_begin(line); });
  std::sort(lines.begin(), lines.end(), [&](int a, int b) { return turn(a) < turn(b); });
  for (const int line : lines) {
    clock.begin(head(line).task);
    ++lines_[line].begun;
    if (most_under_way(line) > 1) make_candidate(line);
  }
}

int StepOrder::most_under_way(int line) const {
  return line >= tasks_.stages() && line < tasks_.scalars() ? parts_under_way : 1;
}

void StepOrder::ended(const Task& task, Clock&) {
  Line& line = lines_[task.number];
  Task& known = tasks_.lines[task.number][line.ended++].task;
  known.start = task.start;
  known.end = task.end;
  ++ended_;
  if (task.number < tasks_.first_move && ++ended_before_moves_ == tasks_.before_scalars)
    make_candidate(tasks_.scalars());
  make_candidate(task.number);
  for (const int watcher : line.watchers) make_candidate(watcher);
}

std::map<RingPair, int> StepOrder::most_held() const {
  std::map<RingPair, int> most;
  for (const auto& [pair, ring] : tasks_.rings) {
    std::vector<Span> sent, arrived;  // when a crossing has a buffer here, and there
    for (const StepCrossing& crossing : ring.crossings) {
      Span message;
      for (int k = 0; k < 2; ++k) {
        if (crossing.messages[k] < 0) continue;
        const Task& task = tasks_.lines[ring.lines[k]][crossing.messages[k]].task;
        message.start = message.start < 0 ? task.start : std::min(message.start, task.start);
        message.end = std::max(message.end, task.end);
      }
      sent.push_back({tasks_.pass(pair.from, crossing.writer).task.start, message.end});
      arrived.push_back({message.start, tasks_.pass(pair.to, crossing.last_reader).task.end});
    }
    int& depth = most[pair];
    for (const std::vector<Span>* spans : {&sent, &arrived})
      for (int held = 1, k = 0; k < static_cast<int>(spans->size()); ++k) {
        while (k >= held && (*spans)[k - held].end > (*spans)[k].start) ++held;
        depth = std::max(depth, held);
      }
  }
  return most;
}

}  // namespace mindpipe
