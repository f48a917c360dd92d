#include "program/schedules/order.h"

namespace mindpipe {

/// All forwards of chunk 0, of chunk 1, ..., then the backwards of the last chunk, of the one before it, ...:
/// the gradients of a chunk are reduced while the next one computes.
Order breadth_first_order(const OrderRequest& request) {
  const int stages = request.stages, chunks = request.chunks, micro_batches = request.micro_batches;
  Order order(stages);
  for (int chunk = 0; chunk < stages * chunks; ++chunk)
    for (int k = 0; k < micro_batches; ++k)
      order[request.rank_of(chunk)].push_back({ActionKind::forward, chunk, k});
  for (int chunk = stages * chunks - 1; chunk >= 0; --chunk)
    for (int k = 0; k < micro_batches; ++k)
      order[request.rank_of(chunk)].push_back({ActionKind::backward, chunk, k});
  return order;
}

}  // namespace mindpipe
