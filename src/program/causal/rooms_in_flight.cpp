#include "program/causal/rooms_in_flight.h"

#include <algorithm>

namespace mindpipe {
namespace {

int room_count(const std::vector<int>& counts, int stage) { return counts.empty() ? 0 : counts[stage]; }

}  // namespace

RoomsInFlight::RoomsInFlight(const Outline& outline, const SubnetRules& rules, SubnetsInFlight& subnets)
    : outline_(outline), subnets_(subnets) {
  for (int rank = 0; rank < outline.ranks(); ++rank) {
    const int stage = outline.stage_of_rank(rank);
    ranks_.push_back({Rooms(room_count(rules.slots, stage), rules.keeps_slots ? outline.micro_batches : 0),
                      Rooms(room_count(rules.slabs, stage), rules.keeps_slab ? 1 : 0)});
  }
}

void RoomsInFlight::take_slots(std::int64_t id, int rank, int micro_batch) {
  const auto take = [&](int where) {
    subnets_.slot(id, where, micro_batch) = ranks_[where].slots.take();
    ++subnets_.at(id, where).slots;
  };
  if (!arrives_at(rank)) take(rank);
  if (leaves(rank)) take(rank + 1);
}

bool RoomsInFlight::take_slab(std::int64_t id, int rank) {
  const std::int64_t first_of_lane = subnets_.oldest_of_lane(outline_.lane_of_rank(rank));
  const StageProgress& oldest = subnets_.at(first_of_lane, rank);
  Rooms& slabs = ranks_[rank].slabs;
  if (!slabs.has_room(id == first_of_lane, oldest.slab >= 0 && !oldest.updated ? 1 : 0)) return false;
  subnets_.at(id, rank).slab = slabs.take();
  return true;
}

int RoomsInFlight::most(int stage, Rooms Rank::*rooms) const {
  int most = 0;
  for (std::size_t rank = stage; rank < ranks_.size(); rank += outline_.stages)
    most = std::max(most, (ranks_[rank].*rooms).most());
  return most;
}

}  // namespace mindpipe
