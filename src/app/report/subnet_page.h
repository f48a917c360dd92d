#pragma once
#include <string>

#include "trace/diagnosis.h"

namespace mindpipe {

/// A page that shows a trace of subnets, whole in itself: how the ranks ran them, when each was under way,
/// and where the time of each stage went. `name`: the run; `text`: what the terminal gets.
std::string subnet_page(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph,
                        const std::string& name, const std::string& text);

}  // namespace mindpipe
