#pragma once
#include <string>

#include "app/verbs/arguments.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// What a search found, why, and why nothing else: about thirty lines. `blocks`: those of the search.
/// `spent`: what a step takes beside time.
std::string search_text(const Config& config, int ranks, const SearchFreedom& free, LayoutSearch& search,
                        PricedBlocks& blocks, int top, const std::string& spent = "");
/// Everything that was looked at, as JSON. `plans`: those that were compared, as members of an array.
std::string search_json(const Config& config, int ranks, const SearchFreedom& free,
                        const LayoutSearch& search, const std::string& plans = "");

/// The verb plan with --search.
int plan_search(const Arguments& arguments, const Config& config);

}  // namespace mindpipe
