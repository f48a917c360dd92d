#include "program/schedules/order.h"

namespace mindpipe {

/// Qi et al., "Pipeline Parallelism with Controllable Memory", V-Half: a micro-batch goes through the model
/// and back in half the time that V-ZB leaves it, so stages hold half of what 1f1b does, and a little.
Order half_v_order(const OrderRequest& request) {
  return order_in_v(request, {.forward = {1, 2}, .backward = {1, 2}, .turn = {4, 1, 4}});
}

}  // namespace mindpipe
