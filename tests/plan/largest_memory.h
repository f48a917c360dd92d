#pragma once
#include <algorithm>

#include "config/config.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// Bytes of the rank that needs the most where these blocks are computed again.
inline std::int64_t largest_memory(Config config, const ChosenBlocks& recomputed) {
  config.train.recompute = recomputed;
  const RunPlan plan = make_run_plan(config);
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  return most;
}

}  // namespace mindpipe
