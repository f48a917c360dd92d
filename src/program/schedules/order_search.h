#pragma once
#include <cstdint>

#include "program/schedules/pass_clock.h"

namespace mindpipe {

/// Forwards and whole backwards of a V in the order whose step is the shortest found by the inner clock, with
/// weight gradients put off within so many bytes of tapes: the best few of all schedules and patterns of a V,
/// and of orders in which each stage runs what it can begin soonest, improved by moving passes within their
/// stages. It counts its tries and looks at no clock, so all ranks and machines find the same. Where no order
/// keeps the limit, the one that needs the fewest bytes.
/// `rounds`: how many tries it makes, in multiples of a short search.
Order search_order(const Outline& outline, const PriceList& prices, std::int64_t most_tapes,
                   std::size_t rounds = 12);

}  // namespace mindpipe
