#pragma once
#include <string>
#include <vector>

#include "config/config.h"
#include "plan/trace_prices.h"
#include "trace/diagnosis.h"

namespace mindpipe {

/// Other programs of a traced run, with the prices of the trace.
class OtherPrograms {
 public:
  /// `expected`: of the traced program; `name`: the trace's file.
  OtherPrograms(const StepTrace& trace, const ReplayGraph& graph, const Expected& expected,
                const std::string& name);

  /// Lets the run have other settings, all of them at once: its program is written anew. Refuses what makes
  /// another training of it.
  WhatIfResult expect(const std::vector<std::string>& settings) const;
  /// Changes that keep the grid and shorten a step by a hundredth or more, the best first.
  std::vector<WhatIfResult> suggestions() const;

 private:
  Config traced_;
  Expected expected_;
  std::string name_;
  TracePrices prices_;
  double itself_ = 0;  ///< period of the traced program at these prices
};

/// Up to three suggestions; none where the run's configuration cannot be priced any more.
std::vector<WhatIfResult> suggestions_for(const StepTrace& trace, const ReplayGraph& graph,
                                          const Expected& expected, const std::string& name);

}  // namespace mindpipe
