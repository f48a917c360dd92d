#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// Bulk traffic goes in parts of this size at most, so that nothing of a higher class ever waits long for the
/// link.
inline constexpr std::int64_t bulk_part_bytes = std::int64_t{4} << 20;

/// Parts are cut at edges of chunks of statistics (16,384 elements, f32): each rank's piece of a part may be
/// so much longer than its share.
inline constexpr std::int64_t longest_overhang = std::int64_t{4} * 16384;

/// What all ranks' overhangs take of a part; beyond 32 ranks chunks are what sets the size of a part.
constexpr std::int64_t overhang(int ranks) { return std::min(bulk_part_bytes / 2, ranks * longest_overhang); }

/// In how many parts a slab of `bytes` goes that is cut among `ranks` ranks at edges of chunks; 0 ranks: cut
/// anywhere.
constexpr int parts_of(std::int64_t bytes, int ranks) {
  const std::int64_t most = bulk_part_bytes - overhang(ranks);
  return static_cast<int>(std::max<std::int64_t>(1, (bytes + most - 1) / most));
}

/// The most that the pieces of one part can have together.
constexpr std::int64_t longest_part(int ranks) {
  return bulk_part_bytes - overhang(ranks) + ranks * longest_overhang;
}

}  // namespace mindpipe
