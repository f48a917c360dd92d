#include "program/clock/simulate.h"

#include <algorithm>

#include "program/clock/clock.h"
#include "program/clock/prices.h"
#include "program/clock/written_lists.h"

namespace mindpipe {

const Link& Network::of(const Action& action, int rank) const {
  switch (action.group) {
    case Members::data:
      return data;
    case Members::grid:
      return grid;
    case Members::none:
      break;
  }
  return sends(action) ? link(rank, action.peer) : link(action.peer, rank);
}

Durations durations_of(const Program& program, const Outline& outline, const Network& network) {
  const PriceList prices(outline, network);
  Durations durations;
  for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank) {
    auto& times = durations.emplace_back();
    for (const Action& action : program.ranks[rank]) times.push_back(prices.of(action, rank));
  }
  return durations;
}

Timeline simulate(const Program& program, const Durations& durations, const Network& network) {
  Timeline line;
  for (const auto& list : program.ranks) {
    line.spans.emplace_back(list.size());
    line.started.emplace_back(list.size(), -1);
  }
  line.busy = line.sums = std::vector<std::int64_t>(program.ranks.size());
  WrittenLists lists(program, durations);
  Clock clock(0);
  std::int64_t begun = 0;
  clock.run(lists, [&](const Task& task) {
    for (const Place& member : lists.members(task)) {
      line.spans[member.rank][member.index] = {task.start, task.end};
      line.started[member.rank][member.index] = begun;
    }
    ++begun;
    const Action& action = lists.head(task);
    if (action.queue != Queue::compute || is_communication(action)) return;
    line.busy[task.rank] += task.lasts;
    if (action.sums > 0) line.sums[task.rank] += std::min(task.lasts, network.tensor_time(action));
  });
  line.step = clock.now();
  line.finished = begun == lists.count();
  return line;
}

}  // namespace mindpipe
