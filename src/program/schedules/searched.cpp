#include "program/schedules/order.h"

namespace mindpipe {

/// What a search of orders (order_search.h) is held against where nothing is known of costs.
Order searched_order(const OrderRequest& request) { return zero_bubble_v_order(request); }

}  // namespace mindpipe
