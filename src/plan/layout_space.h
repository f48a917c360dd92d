#pragma once
#include <vector>

#include "plan/layout_search.h"

namespace mindpipe {

/// The grids of `ranks` ranks that have the configuration's degrees where it says some.
std::vector<Coord> grids_of(const Config& config, int ranks, const SearchFreedom& free);
/// A layout with each of the schedules and the chunks that they can have. All forwards first are never the
/// shortest.
std::vector<LayoutChoice> with_other_schedules(const LayoutChoice& now);
/// All layouts of one grid, rules aside.
std::vector<LayoutChoice> layouts_of(const Config& config, const Coord& grid, const SearchFreedom& free);

/// One layout of each way to share products, and to compute again, that a search may ask the prices of.
std::vector<LayoutChoice> layouts_with_prices(const Config& config, int ranks, const SearchFreedom& free);

}  // namespace mindpipe
