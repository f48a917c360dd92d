#pragma once
#include <set>
#include <string>

#include "app/plan/grid_choice.h"
#include "app/plan/open_choice.h"
#include "app/plan/plan.h"
#include "plan/port_changes.h"
#include "plan/run_plan.h"

namespace mindpipe {

/// What `plan` prints first of a configuration on so many ranks. `open`: settings that are chosen before.
inline std::string plan_text(const Config& given, int ranks, bool simulate,
                             const std::set<std::string>& open = {}) {
  const Config config = on_paper(given, ranks, open);
  PortChanges changes(config, open_settings(given, open, ranks));
  return plan_text(given, config, make_run_plan(config), ranks, simulate ? &changes : nullptr);
}

}  // namespace mindpipe
