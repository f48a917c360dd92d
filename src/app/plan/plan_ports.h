#pragma once
#include <string>

#include "plan/port_changes.h"
#include "plan/port_costs.h"

namespace mindpipe {

/// Which traffic delays which: a sentence for each pair that costs half a percent of a step or more, the
/// dearest first; with the change, of those that may be tried, that shortens the step most on paper. Empty:
/// nobody is held up.
std::string ports_text(const Config& config, const PortCosts& costs, PortChanges* changes = nullptr);
/// All pairs that meet at ports, as JSON.
std::string ports_json(const PortCosts& costs);

}  // namespace mindpipe
