#include "app/plan/measure_layouts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/run/run.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/log.h"
#include "optim/rate.h"
#include "plan/run_plan.h"
#include "trace/rank_speeds.h"

namespace mindpipe {
namespace {

constexpr int warm_up_steps = 2, timed_steps = 5;

/// Adds the times of a layout's steps. Each begins once all ranks are behind the one before.
void time_steps(const Arguments& arguments, const Config& config, const LayoutChoice& layout,
                std::vector<double>& seconds) {
  Run run(arguments, config, [&](const Config& given, const World&) { return with_layout(given, layout); });
  const Config& known = run.config();
  Corpus corpus(known.data, Subset::train, fields_of(known), known.seed,
                std::int64_t{known.train.batch} * (warm_up_steps + timed_steps));
  run.make_worker(Purpose::training);
  for (int step = 0; step < warm_up_steps + timed_steps; ++step) {
    run.watchdog().arm(run.step_limit(), fmt::format("step {}", step + 1), "watchdog.step");
    any_rank(run.world(), false);
    const std::int64_t start = now_ns();
    run.worker().step(corpus, step, std::int64_t{step} * known.train.batch,
                      rate_at(known.optimizer.rate, step, known.train.steps));
    while (run.worker().steps().remaining()) continue;
    run.worker().backend().synchronize();
    any_rank(run.world(), false);
    if (step >= warm_up_steps) seconds.push_back(seconds_since(start));
  }
}

}  // namespace

std::vector<std::vector<double>> measured_steps(const Arguments& arguments, const Config& config,
                                                const std::vector<LayoutChoice>& layouts) {
  int argc = arguments.argc;
  char** argv = arguments.argv;
  const MpiSession session(argc, argv);  // open from the first run to the last
  std::vector<std::vector<double>> seconds(layouts.size());
  std::vector<std::size_t> turn(layouts.size());
  std::iota(turn.begin(), turn.end(), 0);
  for (int there_and_back = 0; there_and_back < 2; ++there_and_back) {
    for (const std::size_t one : turn) time_steps(arguments, config, layouts[one], seconds[one]);
    std::reverse(turn.begin(), turn.end());
  }
  return seconds;
}

bool surely_faster(const std::vector<double>& steps, const std::vector<double>& others) {
  constexpr double sure = 2.262;  // Student's t of ten pairs
  std::vector<double> gains;
  for (std::size_t step = 0; step < std::min(steps.size(), others.size()); ++step)
    gains.push_back(others[step] - steps[step]);
  const double count = static_cast<double>(gains.size());
  const double mean = std::accumulate(gains.begin(), gains.end(), 0.0) / count;
  return mean > sure * spread_of(gains) / std::sqrt(count);
}

}  // namespace mindpipe
