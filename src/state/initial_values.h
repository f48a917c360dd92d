#pragma once
#include <cstdint>

#include "state/shard_map.h"

namespace mindpipe {

/// Initial values of elements `within` of a unit's flat order, on this rank, in f32; padding is zero. A
/// function of seed and names alone.
void initial_values(const Unit& unit, std::uint64_t seed, int threads, Elements within, float* flat);

}  // namespace mindpipe
