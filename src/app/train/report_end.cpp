#include "app/train/report_end.h"

#include <algorithm>
#include <numeric>

#include "app/plan/plan_subnets.h"
#include "app/train/measured_prices.h"
#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/log_mark.h"
#include "core/middle.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t losses_of_a_mean = 64;

/// What moved beside what was planned: of each unit whose last user ran elsewhere all its state.
std::string text_of_moves(const Config& config, const RunPlan& plan,
                          const std::vector<UnitMoves::Sent>& moved, std::int64_t subnets) {
  if (!plan.outline.has_moves()) return "";
  UnitMoves::Sent all;
  for (const UnitMoves::Sent& sent : moved) {
    all.messages += sent.messages;
    all.bytes += sent.bytes;
    all.home += sent.home;
  }
  const RoomsOnPaper& paper = plan.subnets->paper;
  const char* ranks_of_place = config.grid.data * config.grid.tensor > 1
                                   ? " of one data and tensor rank of each stage, of which all do the same"
                                   : "";
  const auto each = [&](std::int64_t of_all, std::int64_t count) {
    return static_cast<double>(of_all) / static_cast<double>(count);
  };
  return fmt::format(
      "moves{}: {:.1f} messages and {} a subnet (on paper, without drains, {:.1f} and {}), and {} home at "
      "drains; a candidate whose last user ran elsewhere is {} bytes a parameter, and 16\n",
      ranks_of_place, each(all.messages, subnets), human_bytes(each(all.bytes, subnets)),
      each(paper.moves, paper.subnets), human_bytes(each(paper.moved, paper.subnets)),
      human_bytes(static_cast<double>(all.home)), 4 * (1 + std::ssize(config.optimizer.moments())));
}

std::string text_of_notes(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace

std::string human_count(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

void EndReport::add(double seconds, double loss) {
  seconds_.push_back(seconds);
  all_seconds_ += seconds;
  last_losses_.push_back(loss);
  if (last_losses_.size() > losses_of_a_mean) last_losses_.pop_front();
  drift_.add(seconds);
}

void EndReport::add_units(const SubnetScalars& scalars) {
  units_ += scalars.units;
  clipped_ += scalars.clipped;
  skipped_ += scalars.skipped;
}

double EndReport::seconds_each() const {
  if (seconds_.empty()) return 0;
  if (run_.trains_subnets())
    return trained() < 2 ? 0 : (all_seconds_ - seconds_.front()) / static_cast<double>(trained() - 1);
  return upper_middle(seconds_);
}

double EndReport::mean_loss() const {
  return last_losses_.empty() ? 0
                              : std::accumulate(last_losses_.begin(), last_losses_.end(), 0.0) /
                                    static_cast<double>(last_losses_.size());
}

/// "12.3k tokens/s, 4.5 GFLOP/s by 6 x parameters"
std::string EndReport::speed(const char* of_what) const {
  const RunPlan& plan = run_.worker().plan();
  const double counted = static_cast<double>(run_.config().train.batch * plan.counted.of_sample),
               each = seconds_each();
  return fmt::format("{} {}s/s, {:.1f} GFLOP/s by {}{}", human_count(counted / each), plan.counted.what,
                     plan.formula.operations * counted / each / 1e9, plan.formula.text, of_what);
}

/// "batch 512, noise scale 812 +- 9 %: 61 % of each sample counts"
std::string EndReport::text_of_noise() const {
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

std::string EndReport::text_of_steps(const std::vector<TimeSpent>& stages,
                                     const std::vector<std::string>& notes) const {
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
  text += drift_.text(seconds_each()) + table_of(stages, expected) + text_of_noise();
  return text + text_of_notes(notes);
}

/// The blocks of each stage, and by how much the work of its slowest rank takes longer than its price: the
/// speeds by which blocks may be moved. Collective.
std::string EndReport::text_of_cut() {
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

/// Collective: other ranks bring what they waited for and moved.
std::string EndReport::text_of_subnets(const std::vector<TimeSpent>& stages) {
  Worker& worker = run_.worker();
  SubnetFeed& subnets = *worker.subnets();
  const std::vector<SubnetWaits> waits = of_stages(worker, subnets.script().waits);
  const std::vector<UnitMoves::Sent> moved = of_stages(worker, worker.residency().moves().sent());
  const std::string prices = write_measured_prices(run_, run_.config().run.dir + "/prices.yaml");
  if (trained() == 0) return "";
  const RunPlan& plan = worker.plan();
  const RoomsOnPaper& paper = plan.subnets->paper;
  std::string text = fmt::format("\n{} subnets, mean loss of the last ones {:.4f}", trained(), mean_loss());
  if (const double each = seconds_each(); each > 0)
    text += fmt::format("; one every {}: {}", human_seconds(each), speed(" of the mean subnet"));
  text += fmt::format("\nunits updated {}, clipped {}, skipped {}\n", units_, clipped_, skipped_);
  if (plan.outline.ranks() > 1)
    text += fmt::format("on paper {:.2f} times as fast as one stage, a subnet every {}\n", paper.speed_up(),
                        human_seconds(paper.seconds_each()));
  return text + text_of_moves(run_.config(), plan, moved, trained()) + prices + "\n" +
         table_of_subnets(stages, waits, plan.outline.stages);
}

void EndReport::print_table(const std::vector<std::string>& notes) {
  Worker& worker = run_.worker();
  const bool subnets = run_.trains_subnets();
  const std::vector<TimeSpent> stages = of_stages(worker, worker.executor().spent(worker.training()));
  std::string text = subnets ? text_of_subnets(stages) : "";
  const std::string cut = text_of_cut();
  if (!run_.is_rank_0() || trained() == 0) return;
  if (!subnets) text = text_of_steps(stages, notes) + (cut.empty() ? "" : "\n" + cut);
  else text += text_of_notes(notes);
  if (worker.ledger().total().calls > 0)
    text += fmt::format("\ntraffic of rank 0\n{}", worker.ledger().table());
  print(marked(text));
}

}  // namespace mindpipe
