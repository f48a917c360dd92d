#pragma once
#include <optional>
#include <string>

#include "app/run/run.h"
#include "plan/fit_prices.h"
#include "trace/pass_times.h"
#include "trace/step_trace.h"

namespace mindpipe {

/// The prices that the passes of the last subnets had, at a drain; on rank 0 of the job, and where enough of
/// them were trained. Collective.
std::optional<FittedPrices> measured_prices(Worker& worker, bool is_rank_0);

/// What the passes of a trace of subnets say of its prices, those of all ranks; none: there are too few.
std::optional<FittedPrices> prices_in(const StepTrace& trace, const Config& config);
/// "forwards took 1.02 times as long as planned, backwards 0.99 times; farthest off is conv-7, 2.1 times;
/// stage 2 takes 1.90 times as long as others"
std::string text_of_prices(const FittedPrices& prices);

/// Writes these prices to `file`, on rank 0, and gives a line that says how far off the plan's were; empty
/// where there are none. Collective.
std::string write_measured_prices(Run& run, const std::string& file);

}  // namespace mindpipe
