#include "program/causal/moves_in_flight.h"

#include <algorithm>

namespace mindpipe {

void MovesInFlight::put(const UnitMove& move, Owner::Of of, Clock& clock) {
  waiting_[{move.from, move.to}].push_back({{of, move.subnet}, move.units});
  std::deque<int>& turns = leaving_[move.from];
  if (std::find(turns.begin(), turns.end(), move.to) != turns.end()) return;
  turns.push_back(move.to);
  if (turns.size() == 1) start(move.from, clock);
}

/// What waits behind a move for the same reader goes with it.
void MovesInFlight::start(int from, Clock& clock) {
  const int to = leaving_[from].front();
  std::deque<Waiting>& waiting = waiting_[{from, to}];
  const Owner owner = waiting.front().owner;
  std::vector<int>& units = units_.emplace_back();
  for (; !waiting.empty() && waiting.front().owner == owner; waiting.pop_front())
    units.insert(units.end(), waiting.front().units.begin(), waiting.front().units.end());
  std::sort(units.begin(), units.end());
  const Price price = prices_.move(from, to, units);
  clock.put({.kind = TaskKind::move,
             .rank = from,
             .peer = to,
             .owner = owner,
             .chunk = outline_.stage_of_rank(to),
             .parts = move_of(outline_, units).parts,
             .units = units,
             .lasts = price.lasts,
             .load = price.load});
}

void MovesInFlight::end(int from, Clock& clock) {
  std::deque<int>& turns = leaving_[from];
  const int to = turns.front();
  turns.pop_front();
  if (!turns.empty()) start(from, clock);
  if (waiting_[{from, to}].empty()) return;
  turns.push_back(to);
  if (turns.size() == 1) start(from, clock);
}

}  // namespace mindpipe
