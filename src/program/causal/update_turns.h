#pragma once
#include <cstdint>
#include <vector>

#include "program/causal/subnet_rules.h"
#include "program/causal/subnets_in_flight.h"
#include "program/clock/clock.h"

namespace mindpipe {

/// When a subnet's forward may read its units, and its update may come: by the order of subnets' work.
class UpdateTurns {
 public:
  /// `first`: the first subnet after a drain.
  UpdateTurns(const Outline& outline, const SubnetsInFlight& subnets, SubnetOrder order, std::int64_t first);

  bool may_forward(std::int64_t id, int rank) const {
    if (order_ == SubnetOrder::causal) return subnets_.at(id, rank).missing == 0;
    return order_ == SubnetOrder::free || ranks_[rank].updated >= first_of_group(id);
  }
  /// The gradients of a subnet are complete on a rank.
  void complete(std::int64_t id, int rank, Clock& clock);
  /// The subnet whose update is the next on a rank; -1: there is none.
  std::int64_t take(int rank);
  void note_update(int rank) { ++ranks_[rank].updated; }
  /// No subnet follows: groups that are not full may be complete.
  void close();
  /// The next subnet is the first after a drain.
  void begin_at(std::int64_t first) { begin_ = first; }

 private:
  struct Rank {
    std::vector<std::int64_t> to_update;  ///< in order of ids
    std::vector<std::int64_t>
        done;                  ///< subnets of a group that is updated together whose gradients are complete
    std::int64_t updated = 0;  ///< subnets
  };
  std::int64_t first_of_group(std::int64_t id) const { return id / group_ * group_; }
  void update_group(Rank& rank);

  const SubnetsInFlight& subnets_;
  SubnetOrder order_;
  std::int64_t group_;  ///< subnets
  std::int64_t begin_;
  std::vector<Rank> ranks_;
};

}  // namespace mindpipe
