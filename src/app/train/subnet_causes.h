#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/fit_prices.h"
#include "trace/diagnosis.h"

namespace mindpipe {

/// The prices that the passes in a trace of subnets had, and which ranks are slow by them.
struct SubnetCauses {
  std::optional<FittedPrices> prices;
  std::string unknown;  ///< why there are no prices
  std::vector<Cause> causes;
};

/// `measured`: what the trace's actions took; `name`: its file.
SubnetCauses subnet_causes(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                           const std::string& name);

/// Who is slow in a trace of subnets; where its replay is not the run, why nothing can be said.
std::vector<std::string> first_lines_of_subnets(const StepTrace& trace, const std::string& name);

}  // namespace mindpipe
