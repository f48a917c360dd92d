#include "app/train/report_end.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "app/plan/dry_run.h"
#include "app/verbs/main_verb.h"
#include "core/log_mark.h"
#include "core/text.h"

namespace mindpipe {

std::string human_count(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

void EndReport::add_step(double seconds, const StepScalars& scalars) {
  seconds_.push_back(seconds);
  last_loss_ = scalars.loss;
}

double EndReport::median_step() const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
  return sorted[sorted.size() / 2];
}

void EndReport::print_table(bool is_rank_0) {
  const Layout& layout = worker_.layout();
  const std::vector<TimeSpent> stages = of_stages(worker_, worker_.executor().spent(worker_.training()));
  if (!is_rank_0 || seconds_.empty()) return;
  const bool emulated = !row_of(config_.device.kind).computes;
  const RunPlan& plan = worker_.plan();
  const double counted = static_cast<double>(layout.batch * plan.counted.of_sample), median = median_step();
  std::string text =
      fmt::format("\n{} steps, last loss {:.4f}; median step {}: {} {}s/s, {:.1f} GFLOP/s by {}\n\n",
                  seconds_.size(), last_loss_, human_seconds(median), human_count(counted / median),
                  plan.counted.what, plan.formula.operations * counted / median / 1e9, plan.formula.text);
  const Timeline& simulated = plan.training.expected;
  std::vector<double> expected;
  for (int stage = 0; stage < layout.grid.pipeline && emulated; ++stage)
    expected.push_back(simulated.bubble(stage));
  if (emulated)
    text += fmt::format("the simulator expects {} a step; ",
                        human_seconds(static_cast<double>(simulated.step) * 1e-9));
  text += table_of(stages, expected);
  const RunFacts facts{layout.micro_batches(),        layout.grid.data,      layout.grid.tensor,
                       config_.schedule.chunks,       config_.schedule.kind, config_.train.zero > 0,
                       !config_.schedule.cuts.empty()};
  for (const std::string& note : advice_on(stages, facts)) text += fmt::format("note: {}\n", note);
  if (worker_.ledger().total().calls > 0)
    text += fmt::format("\ntraffic of rank 0\n{}", worker_.ledger().table());
  print(marked(text));
}

}  // namespace mindpipe
