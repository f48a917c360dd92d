#include "app/train/step_end_report.h"

#include <algorithm>

#include "app/plan/plan.h"
#include "config/config.h"
#include "core/middle.h"
#include "core/text.h"

namespace mindpipe {

void StepEndReport::add(double seconds, double loss) {
  EndReport::add(seconds, loss);
  drift_.add(seconds);
}

double StepEndReport::seconds_each() const { return seconds_.empty() ? 0 : upper_middle(seconds_); }

/// "batch 512, noise scale 812 +- 9 %: 61 % of each sample counts"
std::string StepEndReport::text_of_noise() const {
  const Config& config = run_.config();
  if (config.train.noise_every == 0 || !row_of(config.device.kind).computes) return "";
  if (run_.worker().layout().data_shards == 1)
    return "noise scale: not known, since the batch is one data shard (reproducible.data: 2 or more, from "
           "the first step on)\n";
  if (!noise_scale_)
    return "noise scale: not known yet (it takes ten measured steps or more, and a signal that noise does "
           "not hide)\n";
  constexpr double sure = 0.5;
  const double batch = config.train.batch, worth = NoiseScale::worth(batch, noise_scale_->samples);
  return fmt::format("batch {}, noise scale {:.3g} +- {:.0f} %: {:.0f} % of each sample counts{}\n",
                     config.train.batch, noise_scale_->samples, 100 * noise_scale_->error,
                     100 * worth / batch,
                     noise_scale_->error > sure ? " (more measured steps would make that sure)" : "");
}

std::string StepEndReport::text_of_steps(const std::vector<TimeSpent>& stages) const {
  const Config& config = run_.config();
  const Layout& layout = run_.worker().layout();
  const bool emulated = !row_of(config.device.kind).computes;
  std::string text = fmt::format("\n{} steps, last loss {:.4f}; median step {}: {}\n\n", trained(),
                                 last_losses_.back(), human_seconds(seconds_each()), speed(""));
  const Timeline& simulated = run_.worker().plan().training.expected;
  std::vector<double> expected;
  for (int stage = 0; stage < layout.grid.pipeline && emulated; ++stage)
    expected.push_back(simulated.bubble(stage));
  if (emulated)
    text += fmt::format("the simulator expects {} a step; ",
                        human_seconds(static_cast<double>(simulated.step) * 1e-9));
  return text + drift_.text(seconds_each()) + table_of(stages, expected) + text_of_noise();
}

/// The blocks of each stage, and by how much the work of its slowest rank takes longer than its price: the
/// speeds by which blocks may be moved. Collective.
std::string StepEndReport::text_of_cut() {
  Worker& worker = run_.worker();
  if (!worker.plan().blocks_may_move) return "";
  const auto [spent, steps] = worker.steps().since_taken();
  const RunPlan& plan = worker.plan();
  std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(worker.world().size), 0);
  of_ranks[static_cast<std::size_t>(worker.world().rank)] = spent.forward + spent.backward + spent.update;
  worker.wiring().sum_over_grid(of_ranks);
  std::vector<std::int64_t> worked(static_cast<std::size_t>(plan.outline.stages), 0);
  for (int rank = 0; rank < worker.world().size; ++rank) {
    std::int64_t& most = worked[static_cast<std::size_t>(coord_at(worker.layout().grid, rank).pipeline)];
    most = std::max(most, of_ranks[static_cast<std::size_t>(rank)]);
  }
  if (steps == 0)
    return "the last step has moved blocks, and none has run since: of stages as they are now no time is "
           "known\n";
  std::string text =
      fmt::format("stages as they are now, in the last {} step{}\n{:<6} {:>9} {:>14} {:>12}\n", steps,
                  steps == 1 ? "" : "s", "stage", "blocks", "work of a step", "of its price");
  for (int stage = 0; stage < plan.outline.stages; ++stage) {
    const double work = static_cast<double>(worked[static_cast<std::size_t>(stage)]) /
                        static_cast<double>(steps),
                 priced = static_cast<double>(std::max<std::int64_t>(1, plan.training.expected.busy[stage]));
    text += fmt::format("{:<6} {:>9} {:>14} {:>11.2f}x\n", stage, blocks_of_stage(plan.outline, stage),
                        human_seconds(work * 1e-9), work / priced);
  }
  return text;
}

std::string StepEndReport::text(const std::vector<TimeSpent>& stages, const std::string& notes) {
  const std::string cut = text_of_cut();
  if (!run_.is_rank_0() || trained() == 0) return "";
  return text_of_steps(stages) + notes + (cut.empty() ? "" : "\n" + cut);
}

}  // namespace mindpipe
