#pragma once
#include <string>

#include "plan/layout_search.h"

namespace mindpipe {

/// How many layouts a search has looked at, and why it left some out: the least that memory is short of, and
/// the rules.
std::string excluded_text(const Config& config, const LayoutSearch& search);

/// Ends a search that found nothing that fits, or nothing that rules allow.
[[noreturn]] void fail_for_want(const Config& config, int ranks, const SearchFreedom& free,
                                const LayoutSearch& search);

}  // namespace mindpipe
