#pragma once
#include <string>
#include <vector>

#include "app/energy/account.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// How much slower a stage may run, and the shares of a run's energy that this saves.
struct StageSaving {
  double slower = 0, least = 0, most = 0;
};

/// How much slower the stages of a pipeline may run, all together, with the step as long as it is.
struct SlackAdvice {
  std::vector<StageSaving> stages;  ///< by number; none: there is no pipeline, or it is too long to simulate
  double skipped_actions = 0;       ///< actions of a pipeline that is too long
};

/// Advice by the simulator. `ranks`: what each did; `shape`: the grid that they form.
SlackAdvice slack_advice(const RunPlan& plan, const EnergyAccount& account,
                         const std::vector<RankEnergy>& ranks, const Coord& shape, const Powers& estimate);
/// A note of it; nothing where no stage may run slower.
std::string slack_text(const SlackAdvice& advice);

}  // namespace mindpipe
