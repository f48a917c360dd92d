#pragma once
#include "program/check/reading.h"

namespace mindpipe {

/// Finds what no book could read: numbers within bounds, and kinds, queues and groups where they belong.
void check_fields(Reading& reading, std::span<const Action> stretch);

}  // namespace mindpipe
