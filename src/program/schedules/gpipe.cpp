#include "program/schedules/order.h"

namespace mindpipe {

/// All forwards, then all backwards: breadth-first with one chunk on each stage.
Order gpipe_order(const OrderRequest& request) { return breadth_first_order(request); }

}  // namespace mindpipe
