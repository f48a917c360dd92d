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

bool Network::tensor_meets(bool messages, bool sums) const {
  const auto meets = [&](const Link& link) {
    return link.picoseconds_per_byte > 0 && link.level == tensor.level;
  };
  return (messages &&
          (meets(message) || std::any_of(between.begin(), between.end(),
                                         [&](const auto& each) { return meets(each.second); }))) ||
         (sums && meets(data));
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

Timeline simulate(const Program& program, const Durations& durations, const Network& network,
                  const std::function<void(const Ports::Left&)>& watch_ports) {
  Timeline line;
  for (const auto& list : program.ranks) {
    line.spans.emplace_back(list.size());
    line.started.emplace_back(list.size(), -1);
  }
  line.busy = line.sums = std::vector<std::int64_t>(program.ranks.size());
  WrittenLists lists(program, durations, network);
  Clock clock(0, network.unseen);
  if (watch_ports) clock.watch_ports(watch_ports);
  std::int64_t begun = 0;
  clock.run(lists, [&](const Task& task) {
    for (const Place& member : lists.members(task)) line.started[member.rank][member.index] = begun;
    ++begun;
  });
  for (int number = 0; number < static_cast<int>(lists.spans().size()); ++number) {
    const Span& span = lists.spans()[number];
    for (const Place& member : lists.members(number)) line.spans[member.rank][member.index] = span;
    const Place place = lists.members(number).front();
    const Action& action = program.at(place);
    if (span.start < 0 || !is_work(action)) continue;
    const std::int64_t lasts = durations[place.rank][place.index];
    line.busy[place.rank] += span.end - span.start;
    if (action.sums > 0)
      line.sums[place.rank] += span.end - span.start - lasts + std::min(lasts, network.tensor_time(action));
  }
  line.step = clock.now();
  line.finished = begun == lists.count();
  return line;
}

}  // namespace mindpipe
