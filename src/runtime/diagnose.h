#pragma once
#include <string>

#include "runtime/worker.h"

namespace mindpipe {

/// After a loss that is not finite: which weight or which block's output is the first that is not. Collective; the sentence is the same on
/// every rank of the pipeline that found something.
std::string diagnose(Worker& worker);

}  // namespace mindpipe
