#include "program/clock/written_lists.h"

#include <algorithm>

#include "program/clock/clock.h"

namespace mindpipe {

WrittenLists::WrittenLists(const Program& program, const Durations& durations, const Network& network)
    : program_(program),
      durations_(durations),
      network_(network),
      tensor_meets_(network.tensor_meets(true, true)),
      graph_(make_task_graph(program, Follow::by_times)),
      waits_(graph_.predecessors),
      spans_(waits_.size()) {
  for (int number = 0; number < static_cast<int>(waits_.size()); ++number)
    if (waits_[number] == 0) ready_.push_back(number);
}

/// All of a transfer's time but its link's latency is time of ports.
Task WrittenLists::task_of(int number) const {
  const Place place = graph_.members[number].front();
  const Action& action = program_.at(place);
  Task task{.kind = kind_of(action),
            .rank = place.rank,
            .number = number,
            .lasts = durations_[place.rank][place.index]};
  if (is_pass(action)) {
    task.sums = {action.sums, action.bytes};
    if (tensor_meets_) task.load = network_.tensor_load(task.sums, task.lasts);
  } else if (is_message(action) || action.group == Members::data) {
    if (is_message(action)) task.peer = action.peer;
    const Link& link = network_.of(action, place.rank);
    const std::int64_t latency = std::min(link.latency, task.lasts);
    task.load = {task.lasts - latency, latency, link.level, network_.calls.of(task.kind, action.bytes)};
  }
  return task;
}

/// What is there first at one moment: computation, then by class, from, to, place in the list.
std::tuple<int, int, int, int> WrittenLists::turn(int number) const {
  const Place place = graph_.members[number].front();
  const Action& action = program_.at(place);
  const int traffic = is_communication(action) ? 1 + static_cast<int>(class_of(action)) : 0;
  return {traffic, place.rank, action.peer, place.index};
}

bool WrittenLists::open(Clock& clock) {
  while (!ready_.empty()) begin_ready(clock);
  return true;
}

/// Lets begin what may; what follows the beginning of one of these is ready then.
void WrittenLists::begin_ready(Clock& clock) {
  std::vector<int> ready;
  ready.swap(ready_);
  std::sort(ready.begin(), ready.end(), [&](int a, int b) { return turn(a) < turn(b); });
  for (const int number : ready) {
    clock.begin(task_of(number));
    if (const int next = graph_.begins_next[number]; next >= 0 && --waits_[next] == 0) ready_.push_back(next);
  }
}

void WrittenLists::ended(const Task& task, Clock&) {
  spans_[task.number] = {task.start, task.end};
  for (const int next : graph_.successors[task.number])
    if (--waits_[next] == 0) ready_.push_back(next);
}

}  // namespace mindpipe
