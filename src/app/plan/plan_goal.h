#pragma once
#include <optional>
#include <string>

#include "config/sections/energy.h"
#include "config/sections/plan.h"
#include "plan/layout_search.h"

namespace mindpipe {

/// What a plan is for: so many ranks, samples of a step, and threads of a rank.
struct PlanSize {
  int ranks = 1, batch = 1, threads = 1;
};

/// What plans are compared by: time, joules, kilograms of CO2, or a sum of money, for what a step is worth. A
/// step of B samples at a noise scale of N is worth B N / (B + N); without a noise scale B.
class PlanGoal {
 public:
  /// Reads what was asked for. Refuses carbon without an intensity, costs without prices, batches without a
  /// noise scale.
  explicit PlanGoal(const Config& config);

  /// What layouts are searched by.
  StepPrice price(const PlanSize& size) const;
  const std::optional<double>& noise_scale() const { return noise_scale_; }

  /// What a step is worth, in samples, at `times` the noise scale.
  double worth(int batch, double times = 1) const;
  /// The goal's figure of a step, for each sample that it is worth.
  double of_sample(const LayoutCandidate& step, const PlanSize& size, double times = 1) const;
  double joules(const LayoutCandidate& step, const PlanSize& size) const;
  /// Kilograms of CO2 of so many joules of the computers, and money; none: nobody said what is needed.
  std::optional<double> kilograms(double joules) const;
  std::optional<double> money(const LayoutCandidate& step, const PlanSize& size) const;

 private:
  StepPrice in_joules(const PlanSize& size) const;
  StepPrice in_money(const PlanSize& size) const;
  double facility_kwh(double joules) const;
  bool has_prices() const { return asked_.rank_hour > 0 || asked_.kwh > 0 || asked_.co2_kg > 0; }

  PlanConfig asked_;
  EnergyConfig energy_;
  std::string device_;
  std::optional<double> noise_scale_;
};

}  // namespace mindpipe
