#include "program/causal/update_turns.h"

#include <algorithm>

#include "program/causal/sorted_ids.h"

namespace mindpipe {

UpdateTurns::UpdateTurns(const Outline& outline, const SubnetsInFlight& subnets, SubnetOrder order,
                         std::int64_t first)
    : subnets_(subnets),
      order_(order),
      group_(group_of_bulk(outline)),
      begin_(first),
      ranks_(outline.ranks()) {
  for (Rank& rank : ranks_) rank.updated = first;
}

void UpdateTurns::complete(std::int64_t id, int rank, Clock& clock) {
  Rank& here = ranks_[rank];
  clock.touch(rank);
  if (order_ != SubnetOrder::bulk) return insert_sorted(here.to_update, id);
  insert_sorted(here.done, id);
  update_group(here);
}

std::int64_t UpdateTurns::take(int rank) {
  std::vector<std::int64_t>& waiting = ranks_[rank].to_update;
  if (waiting.empty()) return -1;
  const std::int64_t id = waiting.front();
  waiting.erase(waiting.begin());
  return id;
}

void UpdateTurns::close() {
  for (Rank& rank : ranks_) update_group(rank);
}

/// The updates of a group wait for the backwards of all its subnets and follow in order of ids.
void UpdateTurns::update_group(Rank& rank) {
  if (rank.done.empty()) return;
  const std::int64_t group = first_of_group(rank.done.front()), whole = group + group_;
  const std::int64_t first = std::max(group, begin_),
                     end = subnets_.is_closed() ? std::min(whole, subnets_.known()) : whole;
  if (static_cast<std::int64_t>(rank.done.size()) < end - first) return;
  rank.to_update.insert(rank.to_update.end(), rank.done.begin(), rank.done.end());
  rank.done.clear();
}

}  // namespace mindpipe
