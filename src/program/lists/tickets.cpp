#include "program/lists/tickets.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/check.h"

namespace mindpipe {

void give_tickets(Program& program, const Timeline& line) {
  MP_CHECK(line.finished, "tickets for a program that stands still");
  std::set<std::int64_t> starts;
  for (const Place& place : program.places())
    if (is_communication(program.at(place))) starts.insert(line.started[place.rank][place.index]);
  const std::vector<std::int64_t> sorted(starts.begin(), starts.end());

  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    auto& list = program.ranks[rank];
    const auto& started = line.started[rank];
    std::vector<int> order(list.size()), place_of(list.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return started[a] < started[b]; });
    for (std::size_t place = 0; place < order.size(); ++place)
      place_of[order[place]] = static_cast<int>(place);
    std::vector<Action> sorted_list;
    for (int index : order) {
      Action action = std::move(list[index]);
      if (is_communication(action))
        action.ticket = std::lower_bound(sorted.begin(), sorted.end(), started[index]) - sorted.begin();
      for (int& earlier : action.after) earlier = place_of[earlier];
      std::sort(action.after.begin(), action.after.end());
      sorted_list.push_back(std::move(action));
    }
    list = std::move(sorted_list);
  }
}

}  // namespace mindpipe
