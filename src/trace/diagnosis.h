#pragma once
#include <string>
#include <vector>

#include "trace/causes.h"
#include "trace/levels.h"
#include "trace/what_if.h"

namespace mindpipe {

/// A period with the interval that holds it in nine of ten draws of the steps.
struct Expected {
  std::int64_t period = 0, least = 0, most = 0;
};

/// What a change makes of the period that is expected.
struct WhatIfResult {
  std::string change;
  Expected expected;
};

/// What a trace says of its run.
struct Diagnosis {
  ReplayMatch identity;
  Expected expected;
  std::vector<StepLevel> levels;
  std::vector<Cause> causes;
  std::vector<WhatIfResult> changes;
};

/// Replays a trace, and asks it. Refuses with exit code 65 a trace whose effects come before their causes, or
/// whose replay does not give its own times back; `name` is its file. `changes`: what-ifs, see WhatIf.
Diagnosis diagnose(const StepTrace& trace, const ReplayGraph& graph, const std::vector<std::string>& changes,
                   const std::string& name);

/// At most about twenty lines, whatever is found.
std::string text_of(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph);
/// The sentences about causes alone, the dearest first; none: one that says so.
std::vector<std::string> findings_of(const Diagnosis& diagnosis, const StepTrace& trace,
                                     const ReplayGraph& graph);

}  // namespace mindpipe
