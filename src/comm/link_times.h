#pragma once
#include <vector>

#include "comm/mpi.h"

namespace mindpipe {

/// What messages between two ranks take: seconds before any arrives, and bytes a second behind that. 0: not
/// known, as where there are no two such ranks.
struct LinkTimes {
  double latency = 0, rate = 0;
};
/// One message and how long it took.
struct TimedMessage {
  double bytes, seconds;
};
/// What a short and a long message say. Where the short one took longer it says nothing: its latency is 0,
/// not known, and the rate is the long one's.
LinkTimes link_times_of(const TimedMessage& short_one, const TimedMessage& long_one);

/// What they take within a node and between two.
struct NodeLinkTimes {
  LinkTimes within, between;
};

/// The rank that each rank exchanges messages with in its own node, and in the next one: neighbours of a node
/// in pairs, and of two nodes the ranks that have equal places there. -1: none. `nodes`: of each rank.
struct LinkPartners {
  std::vector<int> within, between;
};
LinkPartners link_partners(const std::vector<int>& nodes);

/// Times messages between partners, all at once and both ways, the shortest of many. Rank 0's are given back,
/// on every rank those of its own pairs. Collective over the world.
NodeLinkTimes time_links(const World& world, const std::vector<int>& nodes);

}  // namespace mindpipe
