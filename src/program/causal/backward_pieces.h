#pragma once
#include <vector>

#include "program/causal/subnets_in_flight.h"
#include "program/clock/task.h"

namespace mindpipe {

/// Cuts last backwards into pieces. Where a subnet's gradients are summed over data, its last backward on a
/// rank goes block by block, so that the sums of a block's units start while it goes on.
class BackwardPieces {
 public:
  BackwardPieces(const Outline& outline, const PriceList& prices, const SubnetsInFlight& subnets);

  /// Hears of the subnet that is known next.
  void add(const Subnet& subnet);
  /// Forgets all subnets below `oldest`.
  void forget(std::int64_t oldest);
  /// Whether a backward goes in pieces.
  bool divides(const Task& backward) const;
  /// The rank begins a backward in pieces, and takes no other work before it has taken all of them.
  void begin(const Task& backward) { rest_[backward.rank] = backward; }
  /// Fills the next piece of the backward that a rank has begun; false: there is none.
  bool take(int rank, Task& task);
  /// How long the pieces last that a rank has yet to take, in nanoseconds.
  std::int64_t rest(int rank) const;

 private:
  bool has_units(std::int64_t subnet, int first, int last) const;
  PassWork work(std::int64_t subnet, int first, int last) const;

  const Outline& outline_;
  const PriceList& prices_;
  const SubnetsInFlight& subnets_;
  std::int64_t first_;           ///< the oldest subnet that is known here
  std::vector<PassWork> works_;  ///< [subnet][block]: its backward
  std::vector<Task> rest_;       ///< by rank, what is left; no blocks: nothing
};

}  // namespace mindpipe
