#pragma once
#include <functional>

#include "plan/layout_search.h"

namespace mindpipe {

/// Costs above the best by more than this are not near it.
inline constexpr double near_costs = 1.05;

/// A cost that others reach, found with what a search has timed; 0: none.
using CostElsewhere = std::function<double(LayoutSearch& so_far)>;

/// One search over all grids that are free. `known`: a cost that others reach, above which no layout is
/// looked at; 0: none. `blocks`: of this search, or of one that differs in its grids alone. `elsewhere`:
/// asked before layouts are looked at that take long.
LayoutSearch search_once(const Config& config, int ranks, const SearchFreedom& free, int wanted,
                         const StepPrice& price, double known, PricedBlocks& blocks,
                         const CostElsewhere& elsewhere = nullptr);

/// Plans the best few whole, and those other kinds of layouts that count as equal to the best, until all of
/// them are known to fit.
void settle(LayoutSearch& search, const Config& config, int wanted, PricedBlocks& blocks);

}  // namespace mindpipe
