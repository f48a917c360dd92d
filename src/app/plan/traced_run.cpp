#include "app/plan/traced_run.h"

#include <algorithm>
#include <filesystem>

#include "app/plan/profile_origin.h"
#include "app/run/version.h"
#include "app/train/measured_prices.h"
#include "app/train/trace_file.h"
#include "config/config.h"
#include "core/launcher.h"
#include "io/file.h"
#include "plan/layout_space.h"
#include "plan/trace_prices.h"
#include "runtime/trace_reader.h"

namespace mindpipe {

TracedRun traced_run(const Config& given, int ranks, const SearchFreedom& free, const std::string& run) {
  const std::string path = replayable_trace_of(run);
  const std::string prices = std::filesystem::path(path).replace_filename("prices.yaml");
  const StepTrace trace = read_aligned_trace(path);
  TracedRun traced{config_of_yaml(trace.configuration, path), given};
  MP_REQUIRE(traced.config.model == given.model && traced.config.data.sequence == given.data.sequence &&
                 traced.config.train.precision == given.train.precision,
             Exit::bad_configuration,
             "plan --from {}: that run trained another model, which says nothing of this one's prices", run);
  (trace.of_subnets ? traced.priced.supernet.prices : traced.priced.device.profile) = prices;
  if (launch().rank != 0) return traced;
  if (trace.of_subnets) {
    const auto passes = prices_in(trace, traced.config);
    MP_REQUIRE(
        passes, Exit::bad_data,
        "plan --from {}: its trace has too few subnets to tell their prices (a larger trace.steps keeps "
        "more)",
        run);
    replace_file(prices, text_of(*passes, run));
    return traced;
  }
  const ReplayGraph graph(trace.grid, trace.program);
  const TracePrices fitted =
      fit_trace_prices(trace, graph, measured_times(trace, graph, trace.clock_bound), traced.config);
  Profile profile = profile_of(fitted, given, layouts_with_prices(given, ranks, free));
  const ProfileOrigin origin = origin_here(given.device);
  profile.machine = origin.machine;
  profile.instructions = origin.instructions;
  profile.kernels = origin.kernels;
  profile.threads = std::max(1, origin.threads);
  profile.program = version();
  profile.ranks = graph.ranks();
  replace_file(prices, text_of(profile));
  return traced;
}

}  // namespace mindpipe
