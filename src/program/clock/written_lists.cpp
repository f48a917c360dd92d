#include "program/clock/written_lists.h"

#include <algorithm>

#include "program/clock/clock.h"

namespace mindpipe {

WrittenLists::WrittenLists(const Program& program, const Durations& durations)
    : program_(program),
      durations_(durations),
      graph_(make_task_graph(program)),
      waits_(graph_.predecessors) {
  for (int number = 0; number < static_cast<int>(waits_.size()); ++number)
    if (waits_[number] == 0) ready_.push_back(number);
}

/// What is there first at one moment: computation, then by class, from, to, place in the list.
std::tuple<int, int, int, int> WrittenLists::turn(int number) const {
  const Place place = graph_.members[number].front();
  const Action& action = program_.at(place);
  const int traffic = is_communication(action) ? 1 + static_cast<int>(class_of(action)) : 0;
  return {traffic, place.rank, action.peer, place.index};
}

bool WrittenLists::open(Clock& clock) {
  std::sort(ready_.begin(), ready_.end(), [&](int a, int b) { return turn(a) < turn(b); });
  for (const int number : ready_) {
    const Place place = graph_.members[number].front();
    clock.begin({.rank = place.rank, .number = number, .lasts = durations_[place.rank][place.index]});
  }
  ready_.clear();
  return true;
}

void WrittenLists::ended(const Task& task, Clock&) {
  for (const int next : graph_.successors[task.number])
    if (--waits_[next] == 0) ready_.push_back(next);
}

}  // namespace mindpipe
