#include "app/train/subnet_end_report.h"

#include "app/train/measured_prices.h"
#include "config/config.h"
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
      "moves{}: {:.1f} messages and {} a subnet (on paper, without drains, {:.1f} and {}), and {} home at "
      "drains; a candidate whose last user ran elsewhere is {} bytes a parameter, and 16\n",
      ranks_of_place, each(all.messages, subnets), human_bytes(each(all.bytes, subnets)),
      each(paper.moves, paper.subnets), human_bytes(each(paper.moved, paper.subnets)),
      human_bytes(static_cast<double>(all.home)), 4 * (1 + std::ssize(config.optimizer.moments())));
}

}  // namespace

double SubnetEndReport::seconds_each() const {
  return trained() < 2 ? 0 : (all_seconds_ - seconds_.front()) / static_cast<double>(trained() - 1);
}

/// Collective: other ranks bring what they waited for and moved.
std::string SubnetEndReport::text(const std::vector<TimeSpent>& stages, const std::string& notes) {
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
         table_of_subnets(stages, waits, plan.outline.stages) + notes;
}

}  // namespace mindpipe
