#include "plan/set_prices.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace mindpipe {
namespace {

std::int64_t nanoseconds_of(double seconds) { return std::max<std::int64_t>(1, std::llround(seconds * 1e9)); }

void set_price(BlockCost& cost, const Prices& prices, double price) {
  cost.forward = nanoseconds_of(price * prices.unit);
  cost.backward = nanoseconds_of(price * prices.unit * prices.backward);
  cost.backward_input = cost.backward / 2;
  cost.backward_weight = cost.backward - cost.backward_input;
}

/// The price of a block that all subnets share: of the first, the last, or one in between.
double price_of_shared(const Outline& outline, const Prices& prices, int block) {
  return block == 0 ? prices.embedding : block + 1 == outline.all_blocks() ? prices.head : prices.bridge;
}

}  // namespace

void set_prices(Outline& outline, const Prices& prices, int stages) {
  outline.prices_are_whole = prices.measured;
  if (std::ssize(prices.stages) == stages) outline.slower = prices.stages;
  std::vector<std::int64_t> forward(outline.units.size(), 0);  // the longest of a unit's blocks
  for (int block = 0; block < outline.all_blocks(); ++block) {
    auto& costs = outline.blocks[block];
    for (const BlockPart& part : outline.parts_of[block]) {
      const std::vector<double>& of_part = prices.candidates[part.place];
      MP_CHECK(static_cast<std::size_t>(part.count) == of_part.size(), "block {}: {} prices of {}", block,
               of_part.size(), part.count);
      for (int i = 0; i < part.count; ++i) set_price(costs[part.first + i], prices, of_part[i]);
    }
    if (outline.parts_of[block].empty())
      set_price(costs.front(), prices, price_of_shared(outline, prices, block));
    for (std::size_t candidate = 0; candidate < costs.size(); ++candidate)
      for (const int unit : outline.units_used[block][candidate])
        forward[unit] = std::max(forward[unit], costs[candidate].forward);
  }
  for (std::size_t unit = 0; unit < outline.units.size(); ++unit) {
    const auto price = static_cast<double>(forward[unit]);
    outline.units[unit].update = std::llround(price * prices.update);
    if (prices.move >= 0) outline.units[unit].move = std::llround(price * prices.move);
  }
}

}  // namespace mindpipe
