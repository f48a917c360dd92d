#pragma once
#include <vector>

#include "program/clock/task_graph.h"

namespace mindpipe {

/// An entry of the lists whose turn it is to begin. Where it is the last member of a communication, that has
/// all of its members then: meetings from the first to before the end.
struct ListTurn {
  Place place;
  int first_meeting = 0, end_meeting = 0;
};

/// How all ranks go through their lists: each entry behind all that it waits for.
struct ReplayOrder {
  std::vector<ListTurn> turns;
  bool ends = false;                         ///< turns has all entries: none wait for each other in a circle
  std::vector<std::vector<ListWait>> waits;  ///< [list][index]
  std::vector<std::vector<int>> ranks;       ///< by list; those that share products stand beside each other
};

/// The order of a program's entries. `first_meeting`: by task of the graph, and behind the last one.
ReplayOrder order_of_lists(const Program& program, const TaskGraph& graph,
                           const std::vector<int>& first_meeting);

}  // namespace mindpipe
