#include "program/order.h"

namespace mindpipe {

Order breadth_first_order(int stages, int chunks, int micro_batches, const std::vector<int>& rank_of_chunk) {
  Order order(stages);
  for (int chunk = 0; chunk < stages * chunks; ++chunk)
    for (int k = 0; k < micro_batches; ++k)
      order[rank_of_chunk[chunk]].push_back({ActionKind::forward, chunk, k});
  for (int chunk = stages * chunks - 1; chunk >= 0; --chunk)
    for (int k = 0; k < micro_batches; ++k)
      order[rank_of_chunk[chunk]].push_back({ActionKind::backward, chunk, k});
  return order;
}

}  // namespace mindpipe
