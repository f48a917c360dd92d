#pragma once
#include <string>

#include "plan/port_changes.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// A supernet's plan: how its subnets go through the stages on paper, what of each stage is kept for them,
/// and what its settings cost. `changes`: those that may be recommended in place of the order of passes.
std::string subnets_text(const Config& config, const RunPlan& plan, int ranks, PortChanges* changes);
/// What is kept of each stage for subnets in flight, and what these rooms and the window cost on paper.
std::string rooms_text(const Config& config, const RunPlan& plan);

/// What a supernet's window costs on paper, and the one that would cost nothing.
std::string cost_of_window(const RoomsOnPaper& paper);

/// Why a table's prices of stages are not read; empty: they are, or there are none.
std::string stages_left_out(const Config& config);

/// What passes of a supernet were priced by.
std::string text_of_prices(const Config& config);

}  // namespace mindpipe
