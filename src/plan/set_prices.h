#pragma once
#include "config/models/prices.h"
#include "program/outline.h"

namespace mindpipe {

/// Gives passes and updates of a supernet's outline the times of a table of prices, on `stages` stages. If
/// the table has another number of stages, all count as alike. Messages and sums over data take their times
/// from the network on paper; so do sums inside passes, unless the table was measured.
void set_prices(Outline& outline, const Prices& prices, int stages);

}  // namespace mindpipe
