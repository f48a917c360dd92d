#pragma once
#include <vector>

#include "program/causal/subnet_rules.h"
#include "program/causal/subnets_in_flight.h"
#include "program/lists/rooms.h"

namespace mindpipe {

/// Slots and gradient slabs of each rank, which the subnets in flight take in turn.
class RoomsInFlight {
 public:
  RoomsInFlight(const Outline& outline, const SubnetRules& rules, SubnetsInFlight& subnets);

  /// Whether a forward of a subnet finds a slot where it runs, if nothing arrives there, and one where what
  /// it makes arrives.
  bool has_slots(std::int64_t id, int rank) const {
    return (arrives_at(rank) || has_slot(id, rank)) && (!leaves(rank) || has_slot(id, rank + 1));
  }
  /// Takes these slots for a micro-batch.
  void take_slots(std::int64_t id, int rank, int micro_batch);
  void give_slot_back(int rank, int slot) { ranks_[rank].slots.give_back(slot); }
  /// A slab for a subnet that has none on a rank. False: there is no room.
  bool take_slab(std::int64_t id, int rank);
  void give_slab_back(int rank, int slab) { ranks_[rank].slabs.give_back(slab); }
  /// The most that were ever taken on a stage of any lane.
  int most_slots(int stage) const { return most(stage, &Rank::slots); }
  int most_slabs(int stage) const { return most(stage, &Rank::slabs); }

 private:
  struct Rank {
    Rooms slots, slabs;
  };
  bool arrives_at(int rank) const { return outline_.stage_of_rank(rank) > 0; }
  bool leaves(int rank) const { return outline_.stage_of_rank(rank) + 1 < outline_.stages; }
  bool has_slot(std::int64_t id, int rank) const {
    const std::int64_t oldest = subnets_.oldest_of_lane(outline_.lane_of_rank(rank));
    const int held = oldest < subnets_.known() ? subnets_.at(oldest, rank).slots_held() : 0;
    return ranks_[rank].slots.has_room(id == oldest, held);
  }
  int most(int stage, Rooms Rank::*rooms) const;

  const Outline& outline_;
  SubnetsInFlight& subnets_;
  std::vector<Rank> ranks_;
};

}  // namespace mindpipe
