#include "app/plan/measure_layouts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/run/run.h"
#include "comm/text_of_rank_0.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/middle.h"
#include "optim/rate.h"
#include "plan/run_plan.h"

namespace mindpipe {
namespace {

constexpr int warm_up_steps = 2, timed_steps = 5, most_times = 2;

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

/// Whether the fastest is faster than the last by a percent or more, but not surely.
bool may_be_faster(const std::vector<std::vector<double>>& seconds) {
  constexpr double worth = 0.99;
  const auto fastest = std::min_element(
      seconds.begin(), seconds.end(),
      [](const auto& one, const auto& other) { return upper_middle(one) < upper_middle(other); });
  return upper_middle(*fastest) < worth * upper_middle(seconds.back()) &&
         !surely_faster(*fastest, seconds.back());
}

}  // namespace

std::vector<std::vector<double>> measured_steps(const Arguments& arguments, const Config& config,
                                                const std::vector<LayoutChoice>& layouts, bool beside_last) {
  int argc = arguments.argc;
  char** argv = arguments.argv;
  const MpiSession session(argc, argv);  // open from the first run to the last
  std::vector<std::vector<double>> seconds(layouts.size());
  std::vector<std::size_t> turn(layouts.size());
  std::iota(turn.begin(), turn.end(), 0);
  for (int times = 0; times < most_times; ++times) {
    for (int there_and_back = 0; there_and_back < 2; ++there_and_back) {
      for (const std::size_t one : turn) time_steps(arguments, config, layouts[one], seconds[one]);
      std::reverse(turn.begin(), turn.end());
    }
    // What the first rank has seen decides for all.
    const bool is_open = beside_last && session.rank() == 0 && may_be_faster(seconds);
    if (!any_rank({session.world(), session.rank(), session.size()}, is_open)) break;
  }
  return seconds;
}

bool surely_faster(const std::vector<double>& steps, const std::vector<double>& others) {
  constexpr double unsure = 0.025;
  const std::size_t pairs = std::min(steps.size(), others.size());
  std::size_t not_gained = 0;
  for (std::size_t step = 0; step < pairs; ++step) not_gained += steps[step] < others[step] ? 0 : 1;
  // How probable it is that no more are not gained, where each is as likely gained as not.
  double ways = 1, probable = 0;
  for (std::size_t lost = 0; lost <= not_gained; ++lost) {
    probable += ways * std::pow(0.5, static_cast<double>(pairs));
    ways *= static_cast<double>(pairs - lost) / static_cast<double>(lost + 1);
  }
  return probable <= unsure;
}

}  // namespace mindpipe
