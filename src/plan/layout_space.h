#pragma once
#include <vector>

#include "plan/layout_search.h"

namespace mindpipe {

/// The grids of `ranks` ranks that have the configuration's degrees where it says some.
std::vector<Coord> grids_of(const Config& config, int ranks, const SearchFreedom& free);
/// All layouts of one grid of a model that trains in steps, rules aside.
std::vector<LayoutChoice> layouts_of(const Config& config, const Coord& grid, const SearchFreedom& free);

}  // namespace mindpipe
