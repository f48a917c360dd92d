#include "app/train/subnet_causes.h"

#include "app/train/measured_prices.h"
#include "config/config.h"
#include "core/refusal.h"
#include "trace/subnet_report.h"

namespace mindpipe {

SubnetCauses subnet_causes(const StepTrace& trace, const ReplayGraph& graph, const ReplayTimes& measured,
                           const std::string& name) {
  SubnetCauses found{.unknown = "it has too few passes of each stage (a larger trace.steps keeps more)"};
  const auto refusal = refusal_of([&] {  // a file that the configuration names may have gone
    found.prices = prices_in(trace, config_of_yaml(trace.configuration, name));
  });
  if (refusal) found.unknown = *refusal;
  if (found.prices) found.causes = slow_ranks_of_subnets(graph, measured, found.prices->passes);
  return found;
}

std::vector<std::string> first_lines_of_subnets(const StepTrace& trace, const std::string& name) {
  const ReplayGraph graph(trace.grid, trace.program);
  std::vector<std::string> said;
  const auto refusal = refusal_of([&] {
    for (const Cause& cause : subnet_causes(trace, graph, sound_times(trace, graph, name), name).causes)
      said.push_back(text_of_subnets(cause, trace, graph));
  });
  if (refusal) said.push_back(*refusal);
  return said;
}

}  // namespace mindpipe
