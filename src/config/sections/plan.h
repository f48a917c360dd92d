#pragma once
#include <string>
#include <vector>

#include "config/kinds.h"

namespace mindpipe {

/// What plan --search compares plans by, and what things cost.
struct PlanConfig {
  PlanGoalKind objective = PlanGoalKind::time;
  std::vector<int> batches;                   ///< train.batch that are compared; empty: the one of this run
  std::string noise_scale;                    ///< samples, or a run that measured it; empty: not known
  double rank_hour = 0, kwh = 0, co2_kg = 0;  ///< prices of an hour of a rank, of energy, of CO2
  bool operator==(const PlanConfig&) const = default;
};

}  // namespace mindpipe
