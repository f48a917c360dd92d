#pragma once
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "program/causal/subnets_in_flight.h"
#include "program/clock/clock.h"

namespace mindpipe {

/// The units of tasks, which name them.
using UnitLists = std::deque<std::vector<int>>;

/// Moves of units between ranks. One at a time leaves a rank, and the ranks that it goes to are served in
/// turn.
class MovesInFlight {
 public:
  /// Puts the units of moves that begin in `units`.
  MovesInFlight(const Outline& outline, const PriceList& prices, UnitLists& units)
      : outline_(outline), prices_(prices), units_(units), leaving_(outline.ranks()) {}

  /// Puts a move behind those from its rank to the same rank. `of`: a subnet's, or a drain's.
  void put(const UnitMove& move, Owner::Of of, Clock& clock);
  /// The one that was under way from a rank has ended.
  void end(int from, Clock& clock);

 private:
  struct Waiting {
    Owner owner;
    std::vector<int> units;
  };
  void start(int from, Clock& clock);

  const Outline& outline_;
  const PriceList& prices_;
  UnitLists& units_;
  std::map<std::pair<int, int>, std::deque<Waiting>> waiting_;  ///< from, to
  std::vector<std::deque<int>> leaving_;  ///< destinations by rank, in turn; the first is under way
};

}  // namespace mindpipe
