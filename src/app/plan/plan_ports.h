#pragma once
#include <string>

#include "plan/port_costs.h"

namespace mindpipe {

/// A pair in words: "sums of gradients (data) hold up messages of the pipeline: 3.1 ms of a step of 128 ms".
/// `of`: step or subnet.
std::string pair_text(const PairCost& pair, const PortCosts& costs, const char* of);

/// Which traffic delays which: a sentence for each pair that costs half a percent of a step or more, the
/// dearest first. `changes`: with the change that shortens the step most on paper. Empty: nobody is held up.
std::string ports_text(const Config& config, const PortCosts& costs, bool changes);
/// All pairs that meet at ports, as JSON.
std::string ports_json(const PortCosts& costs);

}  // namespace mindpipe
