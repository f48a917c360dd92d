#pragma once
#include <string>

#include "config/config.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// Where a search has its prices from beside its configuration.
struct TracedRun {
  Config config;  ///< the run's own
  Config priced;  ///< the given one, with the prices of the trace
};

/// Fits prices to the trace of a run, and leaves them beside it for plans of `ranks` ranks. Every rank knows
/// their file; rank 0 writes it, so that others have to wait for that.
TracedRun traced_run(const Config& given, int ranks, const SearchFreedom& free, const std::string& run);

}  // namespace mindpipe
