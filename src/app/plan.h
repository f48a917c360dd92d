#pragma once
#include <string>

#include "config/config.h"

namespace mindpipe {

/// What a configuration would do on `ranks` ranks, told on one process without messages: step, bubble, blocks and memory of every stage.
std::string plan_text(const Config& config, int ranks);

}  // namespace mindpipe
