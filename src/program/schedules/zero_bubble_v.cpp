#include "program/schedules/order.h"

namespace mindpipe {

/// Qi et al., "Pipeline Parallelism with Controllable Memory", V-ZB: forwards reach the bottom at once and
/// the gradients come back as fast, so that every stage holds as much as the first of 1f1b.
Order zero_bubble_v_order(const OrderRequest& request) {
  return order_in_v(request, {.forward = {1, 5}, .backward = {1, 5}, .turn = {2, 1, 3}});
}

}  // namespace mindpipe
