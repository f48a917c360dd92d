#pragma once
#include <string>
#include <vector>

#include "config/config.h"
#include "trace/diagnosis.h"

namespace mindpipe {

/// Other lanes, stages, cuts and rooms for the subnets that a trace of a supernet has, planned by the prices
/// of their passes.
class OtherSubnets {
 public:
  /// `prices`: a file of fitted prices, as supernet.prices names one; `lasts`: what the subnets took, in
  /// nanoseconds; `name`: the trace's file.
  OtherSubnets(const StepTrace& trace, const std::string& prices, std::int64_t lasts,
               const std::string& name);

  /// Lets the subnets run with other settings, all of them at once, in the order that the planner gives them
  /// then. Refuses what makes another training of it.
  WhatIfResult expect(const std::vector<std::string>& settings) const;

 private:
  std::int64_t planned(const Config& config) const;

  Config traced_;
  std::string name_;
  Expected lasts_;
  std::int64_t first_ = 0, behind_ = 0;  ///< subnets [first, behind) are in the trace
  double itself_ = 0;                    ///< what they take as they were planned, at these prices
};

}  // namespace mindpipe
