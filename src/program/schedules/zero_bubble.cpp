#include <algorithm>

#include "program/schedules/order.h"

namespace mindpipe {

/// 1f1b with the backward in two halves: stage i keeps up to i weight gradients back, to fill the bubble
/// with. Each shard's weight gradients are done before the next shard's first backward.
Order zero_bubble_order(const OrderRequest& request) {
  const int stages = request.stages, micro_batches = request.micro_batches;
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    auto& list = order[stage];
    const int kept_back = request.most_kept_back < 0 ? stage : std::min(request.most_kept_back, stage);
    int ahead = std::min(micro_batches, stages - stage), weight = 0;
    for (int k = 0; k < ahead; ++k) list.push_back({ActionKind::forward, stage, k});
    for (int k = 0; k < micro_batches; ++k) {
      list.push_back({ActionKind::backward_input, stage, k});
      const bool shard_ends = (k + 1) % request.micro_batches_of_shard == 0;
      while (weight <= k - (shard_ends ? 0 : kept_back))
        list.push_back({ActionKind::backward_weight, stage, weight++});
      if (ahead < micro_batches) list.push_back({ActionKind::forward, stage, ahead++});
    }
  }
  return order;
}

}  // namespace mindpipe
