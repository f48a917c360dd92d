#pragma once
#include <cstdint>

#include "comm/mpi.h"

namespace mindpipe {

/// Refuses ranks that would cut what travels into parts of different lengths: the two ends of a transfer
/// would not match. Collective.
void require_one_part_length(const World& world, std::int64_t part_bytes);

}  // namespace mindpipe
