#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>

#include "config/sections/run.h"
#include "io/manifest.h"
#include "runtime/step_feed.h"
#include "runtime/subnet_reports.h"

namespace mindpipe {

/// Judges steps, or subnets, by what is known of each: whether a training has to go back, or to end. Scalars
/// of steps are the same on every rank and come in order, so all ranks judge alike without a message.
class Guard {
 public:
  /// `begun`: how far the run had come when it was taken up.
  Guard(const GuardConfig& rules, const RunProgress& begun);

  /// Judges the next step. Once there is trouble, later steps are not judged.
  void hear(const StepScalars& scalars);
  /// Judges the next subnet, whose units keep their weights where gradients are not finite.
  void hear(const SubnetScalars& scalars);

  /// Hears of a step, or subnet, from 0, that has gone wrong in another way.
  void find(std::int64_t at, std::string trouble);

  /// Whether the newest step, or subnet, changed nothing: no state to go back to later.
  bool is_in_a_row() const { return in_a_row_ > 0; }
  /// Whether steps, or subnets, have gone wrong that the training cannot pass over.
  bool is_in_trouble() const { return !trouble_.empty(); }
  /// What has gone wrong, in words: "step 7: the loss is nan, in the 3rd step in a row that changed nothing".
  const std::string& trouble() const { return trouble_; }
  /// Where the trouble was found: the step or subnet, from 0.
  std::int64_t found_at() const { return found_at_; }
  /// The first of the steps in a row that went wrong up to there.
  std::int64_t failed_from() const { return found_at_ + 1 - std::max<std::int64_t>(1, in_a_row_); }

  /// Writes what later judgements depend on into a run's progress.
  void add_to(RunProgress& progress) const;
  /// Goes on from a run's progress; the trouble is over.
  void go_on_from(const RunProgress& progress);

 private:
  std::string jump_of(double loss) const;

  GuardConfig rules_;
  std::int64_t in_a_row_ = 0;    ///< newest steps, or subnets, that changed nothing
  std::deque<double> accepted_;  ///< newest losses that did not jump
  std::string trouble_;
  std::int64_t found_at_ = -1;
};

}  // namespace mindpipe
