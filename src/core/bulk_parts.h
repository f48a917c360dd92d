#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// Most bytes of a part of bulk traffic, so that nothing of a higher class ever waits long for the link.
inline constexpr std::int64_t bulk_part_bytes = std::int64_t{4} << 20;

/// How much longer, in bytes, a rank's piece of a part may be than its share: parts are cut at edges of
/// chunks of statistics (16,384 elements, f32).
inline constexpr std::int64_t longest_overhang = std::int64_t{4} * 16384;

/// Bytes of a part that all ranks' overhangs take; beyond 32 ranks chunks are what sets the size of a part.
constexpr std::int64_t overhang(int ranks) { return std::min(bulk_part_bytes / 2, ranks * longest_overhang); }

/// Number of parts of a slab of `bytes`, cut among `ranks` ranks at edges of chunks; 0 ranks: anywhere.
constexpr int parts_of(std::int64_t bytes, int ranks) {
  const std::int64_t most = bulk_part_bytes - overhang(ranks);
  return static_cast<int>(std::max<std::int64_t>(1, (bytes + most - 1) / most));
}

/// Most bytes that the pieces of one part can have together.
constexpr std::int64_t longest_part(int ranks) {
  return bulk_part_bytes - overhang(ranks) + ranks * longest_overhang;
}

}  // namespace mindpipe
