#include <algorithm>
#include <map>

#include "program/schedules/order.h"

namespace mindpipe {

/// One forward, one backward, in groups of micro-batches that the request names. A stage runs as many
/// forwards ahead as the backward that needs the most of them, and as the way to the last stage and back
/// takes.
Order elastic_order(const OrderRequest& request) {
  const auto forwards = passes_in_groups(ActionKind::forward, request.groups.forward, request),
             backwards = passes_in_groups(ActionKind::backward, request.groups.backward, request);
  const int total = static_cast<int>(forwards.size());
  std::map<std::pair<int, int>, int> place;  // of each forward
  for (int k = 0; k < total; ++k) place[{forwards[k].chunk, forwards[k].micro_batch}] = k;
  int needed = 0;
  for (int k = 0; k < total; ++k)
    needed = std::max(needed, place[{backwards[k].chunk, backwards[k].micro_batch}] - k);
  Order order(request.stages);
  for (int stage = 0; stage < request.stages; ++stage) {
    const int ahead = std::min(total, 2 * (request.stages - 1 - stage) + needed);
    for (int k = -ahead; k < total; ++k) {
      if (ahead + k < total) order[stage].push_back(forwards[ahead + k].on(stage));
      if (k >= 0) order[stage].push_back(backwards[k].on(stage));
    }
  }
  return order;
}
}  // namespace mindpipe
