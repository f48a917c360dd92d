#pragma once
#include "config/models/prices.h"
#include "program/outline.h"

namespace mindpipe {

/// Lets passes and updates of a supernet's outline take what a table of prices says. Messages and sums take
/// what the network on paper does.
void set_prices(Outline& outline, const Prices& prices);

}  // namespace mindpipe
