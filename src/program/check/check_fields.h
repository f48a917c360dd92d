#pragma once
#include "program/check/reading.h"

namespace mindpipe {

/// Finds what no book could read: numbers within bounds, kinds, queues and groups where they belong, fields
/// that a kind has no use for empty, and one place apart for all parts of a sum.
void check_fields(Reading& reading, std::span<const Action> stretch);

}  // namespace mindpipe
