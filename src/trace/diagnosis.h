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
  int draws = 0;
};

/// What a change makes of the period that is expected.
struct WhatIfResult {
  std::string change;
  Expected expected;
  std::string note = {};  ///< what it rests on; may be empty
};

/// "-4.5 ms"
std::string signed_time(std::int64_t ns);

/// What a trace says of its run.
struct Diagnosis {
  ReplayMatch identity;
  Expected expected;
  double held_out = 0;        ///< share by which every second step's medians miss those of the others
  double held_out_plain = 0;  ///< share by which their plain averages do, waits for others included
  std::vector<StepLevel> levels;
  std::vector<Cause> causes;
  std::vector<Cause> suspected;  ///< ranks that were slow in too few steps to be accused
  std::vector<WhatIfResult> changes;
};

/// Replays a trace, and asks it. Refuses with exit code 65 a trace whose effects come before their causes, or
/// whose replay does not give its own times back; `name` is its file. `changes`: what-ifs, see WhatIf.
Diagnosis diagnose(const StepTrace& trace, const ReplayGraph& graph, const std::vector<std::string>& changes,
                   const std::string& name);

/// What a trace's actions took by themselves; refuses a trace as diagnose does.
ReplayTimes sound_times(const StepTrace& trace, const ReplayGraph& graph, const std::string& name);

/// At most about twenty lines, whatever is found.
std::string text_of(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph);
/// The first lines: causes, the dearest first, and what else takes much of a step; none: one that says so.
std::vector<std::string> findings_of(const Diagnosis& diagnosis, const StepTrace& trace,
                                     const ReplayGraph& graph);

/// The first lines of a trace by itself; where its replay is not the run, why nothing can be said.
std::vector<std::string> first_lines(const StepTrace& trace, const std::string& name);

}  // namespace mindpipe
