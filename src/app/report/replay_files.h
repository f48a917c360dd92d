#pragma once
#include <string>

#include "trace/diagnosis.h"

namespace mindpipe {

/// The numbers of a diagnosis, for scripts: nanoseconds, and sentences.
std::string replay_json(const Diagnosis& diagnosis, const StepTrace& trace, const ReplayGraph& graph);

}  // namespace mindpipe
