#include "app/train/measured_prices.h"
#include "app/train/report_end.h"
#include "app/train/subnet_log.h"
#include "app/verbs/main_verb.h"
#include "core/log_mark.h"
#include "core/text.h"

namespace mindpipe {

namespace {

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
      "moves{}: {:.1f} messages and {} a subnet (on paper, without cuts, {:.1f} and {}), and {} home at "
      "cuts; a candidate whose last user ran elsewhere is {} bytes a parameter, and 16\n",
      ranks_of_place, each(all.messages, subnets), human_bytes(each(all.bytes, subnets)),
      each(paper.moves, paper.subnets), human_bytes(each(paper.moved, paper.subnets)),
      human_bytes(static_cast<double>(all.home)), 4 * (1 + std::ssize(config.optimizer.moments())));
}

}  // namespace

void print_subnets_report(Run& run, const SubnetLog& log) {
  Worker& worker = run.worker();
  SubnetFeed& subnets = *worker.subnets();
  const std::vector<TimeSpent> stages = of_stages(worker, worker.executor().spent(subnets.script()));
  const std::vector<SubnetWaits> waits = of_stages(worker, subnets.script().waits);
  const std::vector<UnitMoves::Sent> moved = of_stages(worker, worker.residency().sent());
  const std::string prices = write_measured_prices(run, run.config().run.dir + "/prices.yaml");
  if (!run.is_rank_0() || log.subnets() == 0) return;
  const RunPlan& plan = worker.plan();
  const RoomsOnPaper& paper = plan.subnets->paper;
  const double counted = static_cast<double>(worker.layout().batch * plan.counted.of_sample),
               each = log.seconds_each();
  std::string text =
      fmt::format("\n{} subnets, mean loss of the last ones {:.4f}", log.subnets(), log.mean_loss());
  if (each > 0)
    text += fmt::format("; one every {}: {} {}s/s, {:.1f} GFLOP/s by {} of the mean subnet",
                        human_seconds(each), human_count(counted / each), plan.counted.what,
                        plan.formula.operations * counted / each / 1e9, plan.formula.text);
  text +=
      fmt::format("\nunits updated {}, clipped {}, skipped {}\n", log.units(), log.clipped(), log.skipped());
  if (plan.outline.ranks() > 1)
    text += fmt::format("on paper {:.2f} times as fast as one stage, a subnet every {}\n", paper.speed_up(),
                        human_seconds(paper.seconds_each()));
  text += text_of_moves(run.config(), plan, moved, log.subnets());
  text += prices + "\n" + table_of_subnets(stages, waits, plan.outline.stages);
  if (worker.ledger().total().calls > 0)
    text += fmt::format("\ntraffic of rank 0\n{}", worker.ledger().table());
  print(marked(text));
}

}  // namespace mindpipe
