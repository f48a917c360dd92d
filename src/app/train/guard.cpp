#include "app/train/guard.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/middle.h"
#include "runtime/diagnose.h"

namespace mindpipe {

Guard::Guard(const GuardConfig& rules, const RunProgress& begun) : rules_(rules) { go_on_from(begun); }

void Guard::go_on_from(const RunProgress& progress) {
  in_a_row_ = progress.skipped_in_a_row;
  accepted_.assign(progress.accepted_losses.begin(), progress.accepted_losses.end());
  trouble_.clear();
}

void Guard::add_to(RunProgress& progress) const {
  progress.skipped_in_a_row = in_a_row_;
  progress.accepted_losses.assign(accepted_.begin(), accepted_.end());
}

void Guard::find(std::int64_t at, std::string trouble) {
  trouble_ = std::move(trouble);
  found_at_ = at;
}

/// Says of a loss how far it lies above those that were accepted, where that is too far. Losses that are all
/// the same have no scale to measure by.
std::string Guard::jump_of(double loss) const {
  if (rules_.spike == 0 || accepted_.size() < RunProgress::most_losses) return "";
  std::vector<double> losses(accepted_.begin(), accepted_.end());
  const double median = upper_middle(losses);
  for (double& accepted : losses) accepted = std::abs(accepted - median);
  const double deviation = upper_middle(losses);
  if (deviation == 0 || loss <= median + rules_.spike * deviation) return "";
  return fmt::format("{:.1f} median absolute deviations above {:.4f}, the median of the {} before",
                     (loss - median) / deviation, median, losses.size());
}

void Guard::hear(const StepScalars& scalars) {
  if (is_in_trouble() || scalars.valid == 0) return;
  const std::int64_t step = scalars.step + 1;
  if (!scalars.applied) {
    if (++in_a_row_ < rules_.skips) return;
    const std::string what = std::isfinite(scalars.loss) ? std::string("a gradient is not finite")
                                                         : "the loss is " + number_text(scalars.loss);
    return find(scalars.step, fmt::format("step {}: {}, {} steps in a row changed nothing (guard.skips)",
                                          step, what, in_a_row_));
  }
  in_a_row_ = 0;
  if (const std::string jump = jump_of(scalars.loss); !jump.empty())
    return find(scalars.step,
                fmt::format("step {}: the loss is {:.4f}, {} (guard.spike)", step, scalars.loss, jump));
  if (rules_.spike == 0) return;
  accepted_.push_back(scalars.loss);
  if (accepted_.size() > RunProgress::most_losses) accepted_.pop_front();
}

void Guard::hear(const SubnetScalars& scalars) {
  if (is_in_trouble() || scalars.valid == 0) return;
  in_a_row_ = scalars.units > 0 && scalars.skipped == scalars.units ? in_a_row_ + 1 : 0;
  if (in_a_row_ >= rules_.skips)
    find(scalars.subnet, fmt::format("subnet {}: {} subnets in a row updated nothing (guard.skips)",
                                     scalars.subnet, in_a_row_));
}

}  // namespace mindpipe
