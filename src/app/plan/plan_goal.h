#pragma once
#include <optional>
#include <string>

#include "app/verbs/arguments.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// What plans are compared by: time, joules, kilograms of CO2, or a sum of money, for what a step is worth. A
/// step of B samples at a noise scale of N is worth B N / (B + N); without a noise scale B.
class PlanGoal {
 public:
  /// Reads what was asked for. Refuses carbon without an intensity, costs without prices, batches without a
  /// noise scale.
  PlanGoal(const SearchArguments& asked, const Config& config);

  /// What layouts of so many ranks are searched by.
  StepPrice price(int ranks) const;
  PlanGoalKind kind() const { return asked_.goal; }
  const std::optional<double>& noise_scale() const { return noise_scale_; }

  /// What a step is worth, in samples, at `times` the noise scale.
  double worth(int batch, double times = 1) const;
  /// The goal's figure of a step, for each sample that it is worth.
  double of_sample(const LayoutCandidate& step, int ranks, int batch, double times = 1) const;
  double joules(const LayoutCandidate& step, int ranks) const;
  /// Kilograms of CO2 of so many joules of the computers, and money; none: nobody said what is needed.
  std::optional<double> kilograms(double joules) const;
  std::optional<double> money(const LayoutCandidate& step, int ranks) const;

 private:
  double facility_kwh(double joules) const;

  SearchArguments asked_;
  EnergyConfig energy_;
  double busy_watts_, waiting_watts_;  ///< watts of a rank
  std::optional<double> noise_scale_;
};

}  // namespace mindpipe
