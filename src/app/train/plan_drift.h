#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/run/run.h"
#include "trace/summary.h"

namespace mindpipe {

/// What a rank spends on each kind of work of a step, in nanoseconds. Passes have their sums over tensor
/// ranks in them.
struct StepParts {
  double forward = 0, backward = 0, update = 0, rest = 0;
  double all() const { return forward + backward + update + rest; }
};
/// The parts of a step on a rank as its plan has them.
StepParts planned_parts(const PlannedStep& step, int rank);
/// The parts of a step as they were measured in the mean of `steps` steps of `seconds` each.
StepParts measured_parts(const TimeSpent& spent, int steps, double seconds);

/// How far measured steps are off their plan, what is farthest off, and what to do about it. `prices`: what
/// the plan was priced by, and whether these were measured.
std::string drift_text(const StepParts& planned, const StepParts& measured, double planned_seconds,
                       double measured_seconds, const std::string& prices, bool were_measured);

/// Compares a training with its plan, where a plan was asked for: settings were left to the search, or
/// device.profile prices it. A step that is far off is told once, early in the run.
class PlanDrift {
 public:
  explicit PlanDrift(Run& run) : run_(run) {}
  /// Hears what the newest step of this start took.
  void add(double seconds);
  /// "planned 1.20 s a step, measured 1.22 s (+1.7 %)"; empty: no plan was asked for. `median`: seconds.
  std::string text(double median) const;

 private:
  bool is_planned() const;

  Run& run_;
  std::vector<double> seconds_;
  TimeSpent before_;  ///< by the steps that warm up
};

}  // namespace mindpipe
