#pragma once
#include <string>

#include "plan/layout_search.h"

namespace mindpipe {

/// In place of a layout that needs too much memory: the largest smaller micro-batch, and the fewest stages,
/// with which it would fit. `any_tapes`: all tapes may be kept, computed again or swapped, too.
/// Both are found as if fewer samples, and more stages, never needed more.
std::string what_would_fit(const Config& config, const LayoutChoice& layout, bool any_tapes);

/// Whether it would fit with all its tapes computed again, or all swapped.
bool fits_with_other_tapes(const Config& config, LayoutChoice layout);

}  // namespace mindpipe
