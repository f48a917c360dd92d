#pragma once
#include <functional>
#include <string>

#include "config/config.h"

namespace mindpipe {

/// Where a setting was written, for complaints: "configs/gpt.yaml:12", "command line", ...
using Origin = std::function<std::string(const std::string& key)>;

/// Puts numbers in place of what was left to the program.
void fill_in(Config& config);
/// Refuses settings that are each allowed but contradict each other.
void check_together(const Config& config, const Origin& origin);

}  // namespace mindpipe
