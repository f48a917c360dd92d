#include "program/order.h"

namespace mindpipe {

Order gpipe_order(int stages, int micro_batches) {
  Order order(stages);
  for (int stage = 0; stage < stages; ++stage) {
    for (int k = 0; k < micro_batches; ++k) order[stage].push_back({ActionKind::forward, stage, k});
    for (int k = 0; k < micro_batches; ++k) order[stage].push_back({ActionKind::backward, stage, k});
  }
  return order;
}

}  // namespace mindpipe
