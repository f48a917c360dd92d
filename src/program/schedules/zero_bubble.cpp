#include "program/schedules/order.h"

namespace mindpipe {

/// 1f1b, whose backwards are split: what is put off fills the gaps (order_runs.h).
Order zero_bubble_order(const OrderRequest& request) { return one_forward_one_backward_order(request); }

}  // namespace mindpipe
