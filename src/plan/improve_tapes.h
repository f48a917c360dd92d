#pragma once
#include "plan/layout_search.h"

namespace mindpipe {

/// From the best few layouts: changes what becomes of single blocks' tapes, exchanges two blocks' fates, or
/// moves a block over a cut, where cuts are not given, while the simulator finds a shorter step that fits;
/// what was looked at is added to the search.
void improve_tapes(LayoutSearch& search, const Config& config, const SearchFreedom& free,
                   PricedBlocks& blocks);

}  // namespace mindpipe
