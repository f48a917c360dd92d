#include "program/order.h"

namespace mindpipe {

/// All forwards, then all backwards. Chunk i on stage i.
Order gpipe_order(const OrderRequest& request) {
  const int stages = request.stages, micro_batches = request.micro_batches;
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    for (int k = 0; k < micro_batches; ++k) order[stage].push_back({ActionKind::forward, stage, k});
    for (int k = 0; k < micro_batches; ++k) order[stage].push_back({ActionKind::backward, stage, k});
  }
  return order;
}

}  // namespace mindpipe
