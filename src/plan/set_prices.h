#pragma once
#include "config/models/prices.h"
#include "program/outline.h"

namespace mindpipe {

/// Lets passes and updates of a supernet's outline take what a table of prices says, on so many stages;
/// where the table tells of another number of them, they count as alike. Messages and sums over data take
/// what the network on paper does; sums inside passes too, unless the table was measured.
void set_prices(Outline& outline, const Prices& prices, int stages);

}  // namespace mindpipe
