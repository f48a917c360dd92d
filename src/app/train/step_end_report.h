#pragma once
#include "app/train/plan_drift.h"
#include "app/train/report_end.h"

namespace mindpipe {

/// The end of a start that has trained steps.
class StepEndReport final : public EndReport {
 public:
  explicit StepEndReport(Run& run) : EndReport(run), drift_(run) {}
  void add(double seconds, double loss) override;
  /// The median.
  double seconds_each() const override;

 private:
  std::string text(const std::vector<TimeSpent>& stages, const std::string& notes) override;
  std::string text_of_noise() const;
  std::string text_of_steps(const std::vector<TimeSpent>& stages) const;
  std::string text_of_cut();

  PlanDrift drift_;
};

}  // namespace mindpipe
