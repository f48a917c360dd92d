#pragma once
#include "plan/layout_search.h"

namespace mindpipe {

/// Changes what becomes of single blocks' tapes, or exchanges two neighbours, chunk after chunk, while the
/// simulator finds a shorter step that fits; what was looked at is added to the search.
void improve_tapes(LayoutSearch& search, const Config& config, LayoutCandidate best,
                   const SearchFreedom& free, PricedBlocks& blocks);

}  // namespace mindpipe
