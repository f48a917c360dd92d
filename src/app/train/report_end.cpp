#include "app/train/report_end.h"

#include <numeric>

#include "app/verbs/main_verb.h"
#include "config/config.h"
#include "core/log_mark.h"
#include "core/text.h"

namespace mindpipe {
namespace {

constexpr std::size_t losses_of_a_mean = 64;

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
}

void EndReport::add_units(const SubnetScalars& scalars) {
  units_ += scalars.units;
  clipped_ += scalars.clipped;
  skipped_ += scalars.skipped;
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

void EndReport::print_table(const std::vector<std::string>& notes) {
  Worker& worker = run_.worker();
  std::string of_notes;
  for (const std::string& note : notes) of_notes += in_short_lines(fmt::format("note: {}\n", note));
  std::string all = text(of_stages(worker, worker.executor().spent(worker.training())), of_notes);
  if (!run_.is_rank_0() || trained() == 0) return;
  if (worker.ledger().total().calls > 0)
    all += fmt::format("\ntraffic of rank 0\n{}", worker.ledger().table());
  print(marked(all));
}

}  // namespace mindpipe
