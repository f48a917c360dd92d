#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "plan/trace_prices.h"
#include "trace/diagnosis.h"

namespace mindpipe {

/// A traced run's configuration with other settings, whose keys begin like one of `keys`: others are refused,
/// since they make another training. Logical shards that it had because of its grid follow another grid.
Config with_what_if(const Config& traced, const std::vector<std::string>& settings,
                    std::span<const std::string_view> keys, const std::string& name);
/// What a change makes of a period: as long as its price is beside the traced program's own, `itself`, and as
/// unsure as that one is off what was expected.
WhatIfResult priced_beside(const Expected& expected, double itself, double changed, std::string change);

/// Other programs of a traced run, with the prices of the trace.
class OtherPrograms {
 public:
  /// `expected`: of the traced program; `name`: the trace's file.
  OtherPrograms(const StepTrace& trace, const ReplayGraph& graph, const Expected& expected,
                const std::string& name);

  /// Lets the run have other settings, all of them at once: its program is written anew. Refuses what makes
  /// another training of it, and a grid of which nothing was measured.
  WhatIfResult expect(const std::vector<std::string>& settings) const;
  /// Changes that keep the grid and shorten a step by a hundredth or more, and by more than prices miss of
  /// the traced program itself; the best first.
  std::vector<WhatIfResult> suggestions() const;

 private:
  Config traced_;
  Expected expected_;
  std::string name_;
  bool is_priced_;  ///< whether times on paper are this machine's
  TracePrices prices_;
  double itself_ = 0;  ///< period of the traced program at these prices
};

/// Up to three suggestions; none where the run's configuration cannot be priced any more.
std::vector<WhatIfResult> suggestions_for(const StepTrace& trace, const ReplayGraph& graph,
                                          const Expected& expected, const std::string& name);

}  // namespace mindpipe
