#include "program/causal/messages_in_flight.h"

namespace mindpipe {

MessagesInFlight::MessagesInFlight(const Outline& outline, const PriceList& prices, SubnetsInFlight& subnets)
    : subnets_(subnets), ranks_(outline.ranks()) {
  for (int rank = 0; rank < outline.ranks(); ++rank) {
    const int stage = outline.stage_of_rank(rank);
    const auto price = [&](int peer, int block, bool with_forward) {
      return prices.message(rank, peer, outline.cuts[block], with_forward);
    };
    if (stage + 1 < outline.stages)
      ranks_[rank].price[1] = price(rank + 1, outline.first_block[stage + 1], true);
    if (stage > 0) ranks_[rank].price[0] = price(rank - 1, outline.first_block[stage], false);
  }
}

void MessagesInFlight::send(const Task& pass, bool with_forward, Clock& clock) {
  Rank& here = ranks_[pass.rank];
  const int peer = pass.rank + (with_forward ? 1 : -1);
  ++here.leaving[with_forward];
  clock.put({.kind = TaskKind::message,
             .with_forward = with_forward,
             .rank = pass.rank,
             .peer = peer,
             .owner = pass.owner,
             .chunk = pass.chunk,
             .micro_batch = pass.micro_batch,
             .first = with_forward ? pass.last : pass.first,
             .slot = subnets_.slot(pass.owner.number, peer, pass.micro_batch),
             .lasts = here.price[with_forward].lasts,
             .load = here.price[with_forward].load});
}

}  // namespace mindpipe
