#include <algorithm>

#include "program/schedules/order.h"

namespace mindpipe {

/// One forward, one backward: stage i runs p - i forwards ahead, and never holds more tapes than that.
Order one_forward_one_backward_order(const OrderRequest& request) {
  const int stages = request.stages, micro_batches = request.micro_batches;
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    auto& list = order[stage];
    int ahead = std::min(micro_batches, stages - stage);
    for (int k = 0; k < ahead; ++k) list.push_back({ActionKind::forward, stage, k});
    for (int k = 0; k < micro_batches; ++k) {
      list.push_back({ActionKind::backward, stage, k});
      if (ahead < micro_batches) list.push_back({ActionKind::forward, stage, ahead++});
    }
  }
  return order;
}

}  // namespace mindpipe
