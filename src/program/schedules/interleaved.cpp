#include <algorithm>

#include "program/schedules/order.h"

namespace mindpipe {

/// 1f1b on several chunks a stage, chunk c on stage c mod p, micro-batches in groups of p. Other numbers of
/// micro-batches are padded to the next multiple of p in the order, and the missing work is left out.
Order interleaved_order(const OrderRequest& request) {
  const int stages = request.stages, chunks = request.chunks, micro_batches = request.micro_batches;
  const int padded = (micro_batches + stages - 1) / stages * stages, total = padded * chunks;
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const auto add = [&](ActionKind kind, int k) {
      const int group = k / (stages * chunks), within = k % (stages * chunks);
      const int row = kind == ActionKind::forward ? within / stages : chunks - 1 - within / stages;
      const int micro_batch = group * stages + within % stages;
      if (micro_batch < micro_batches) order[stage].push_back({kind, row * stages + stage, micro_batch});
    };
    const int ahead = std::min(total, 2 * (stages - stage - 1) + (chunks - 1) * stages);
    for (int k = 0; k < ahead; ++k) add(ActionKind::forward, k);
    for (int k = 0; k < total; ++k) {
      if (ahead + k < total) add(ActionKind::forward, ahead + k);
      add(ActionKind::backward, k);
    }
  }
  return order;
}

}  // namespace mindpipe
