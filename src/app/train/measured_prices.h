#pragma once
#include <optional>
#include <string>

#include "app/run/run.h"
#include "plan/fit_prices.h"

namespace mindpipe {

/// The prices that the passes of the last subnets had, at a drain; on rank 0 of the job, and where enough of
/// them were trained. Collective.
std::optional<FittedPrices> measured_prices(Worker& worker, bool is_rank_0);

/// Writes these prices to `file`, on rank 0, and gives a line that says how far off the plan's were; empty
/// where there are none. Collective.
std::string write_measured_prices(Run& run, const std::string& file);

}  // namespace mindpipe
