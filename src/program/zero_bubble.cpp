#include <algorithm>

#include "program/order.h"

namespace mindpipe {

Order zero_bubble_order(int stages, int micro_batches, int micro_batches_of_shard, int lag) {
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    auto& list = order[stage];
    const int kept_back = lag < 0 ? stage : std::min(lag, stage);
    int ahead = std::min(micro_batches, stages - stage), weight = 0;
    for (int k = 0; k < ahead; ++k) list.push_back({ActionKind::forward, stage, k});
    for (int k = 0; k < micro_batches; ++k) {
      list.push_back({ActionKind::backward_input, stage, k});
      const bool shard_ends = (k + 1) % micro_batches_of_shard == 0;
      while (weight <= k - (shard_ends ? 0 : kept_back))
        list.push_back({ActionKind::backward_weight, stage, weight++});
      if (ahead < micro_batches) list.push_back({ActionKind::forward, stage, ahead++});
    }
  }
  return order;
}

}  // namespace mindpipe
