#pragma once
#include <string>
#include <vector>

#include "trace/diagnosis.h"

namespace mindpipe {

/// Something that takes longer, or less, in one run than in another.
struct RunChange {
  std::string what;
  double factor = 1;       ///< times as long as before; 0: before it took nothing
  std::int64_t costs = 0;  ///< nanoseconds that a step is longer for it
};

/// What made the steps of a run longer or shorter than those of an earlier one that ran the same program:
/// each rank's work, each link, each kind of sum and the host, each put back alone. The dearest first; those
/// that cost a hundredth of a step or more.
std::vector<RunChange> changes_between(const ReplayGraph& graph, const ReplayTimes& before,
                                       const ReplayTimes& after);

/// Compares two traces in about ten lines: of one program by what takes longer in it, of two by where their
/// steps go.
std::string text_of_changes(const StepTrace& before, const StepTrace& after, const std::string& name_before,
                            const std::string& name_after);

}  // namespace mindpipe
