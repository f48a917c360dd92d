#pragma once
#include <vector>

#include "config/profile.h"
#include "plan/layout_search.h"
#include "plan/run_plan.h"
#include "trace/work_model.h"

namespace mindpipe {

/// What ran takes in a trace: how many times as long as by the prices of the run's configuration.
struct TracePrices {
  std::vector<double> forward, input, weight;  ///< by block; a whole backward stands in `input`
  double update = 1;
  double message = 1, data = 1, grid = 1;  ///< what travels between stages, over data, among all ranks
  std::vector<double> ranks;               ///< by rank of the job: times as long as its peers
  std::vector<std::int64_t> lags;          ///< usual ones, by lag_class
  /// Whether the trace has backwards in two halves, whose times stand apart; else they are split as on paper.
  bool has_halves = false;
};

/// Fits prices to what a trace measured: a block's factor belongs to all blocks of equal work (least squares
/// over the passes of all chunks, not negative, drawn to the mean).
TracePrices fit_trace_prices(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                             const Config& config);

/// Puts these prices in place of those that a plan of the same model is made of, on any layout.
ChangeOnPaper with_trace_prices(const TracePrices& prices);

/// What these prices say of the blocks of some layouts of the model, for device.profile.
Profile profile_of(const TracePrices& prices, const Config& config, const std::vector<LayoutChoice>& layouts);

}  // namespace mindpipe
