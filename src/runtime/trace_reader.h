#pragma once
#include <string>

#include "trace/step_trace.h"

namespace mindpipe {

/// Reads a file that `write_step_trace` has written. A file that is missing is refused
/// with exit code 66, one that is broken, or of another version, with 65.
StepTrace read_step_trace(const std::string& path);
/// Reads it though the times of some ranks are missing in it, or were never written: these have no steps.
StepTrace read_partial_trace(const std::string& path);
/// Reads it, with the times of all hosts on the first rank's clock and without pauses between steps.
StepTrace read_aligned_trace(const std::string& path);

}  // namespace mindpipe
