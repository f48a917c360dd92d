#pragma once
#include <algorithm>
#include <cstdint>

namespace mindpipe {

/// Bytes of a part of bulk traffic, whatever its link: shorter ones would be all latency, and nothing of a
/// higher class waits long for the longest. Parts that a device's own queues carry cost the start of some
/// kernels each, so they may be longer.
inline constexpr std::int64_t least_part_bytes = std::int64_t{256} << 10,
                              most_part_bytes = std::int64_t{4} << 20,
                              most_queued_part_bytes = std::int64_t{32} << 20;

/// Parts of sums and gathers that a rank lets be under way at a time: one part's messages travel while
/// another's are added.
inline constexpr int parts_under_way = 2;

/// How much longer, in bytes, a rank's piece of a part may be than its share: parts are cut at edges of
/// chunks of statistics (16,384 elements, f32).
inline constexpr std::int64_t longest_overhang = std::int64_t{4} * 16384;

/// Bytes of a part: what the link carries in 250 us, within the limits, of which `most` is the upper one, and
/// a chunk for each of `ranks` that share a sum.
constexpr std::int64_t part_bytes_of(double picoseconds_per_byte, int ranks,
                                     std::int64_t most = most_part_bytes) {
  constexpr double longest_ps = 250e6;
  const bool is_short = picoseconds_per_byte * static_cast<double>(most) > longest_ps;
  const std::int64_t carried = is_short ? static_cast<std::int64_t>(longest_ps / picoseconds_per_byte) : most;
  return std::max({carried, least_part_bytes, ranks * longest_overhang});
}

/// Bytes that parts of `part` bytes have on average, at most, if none is to be longer with all ranks'
/// overhangs. A chunk for each rank is the least: shorter ones would be empty, or some ranks' alone.
constexpr std::int64_t without_overhang(int ranks, std::int64_t part) {
  return std::max(part - ranks * longest_overhang, std::min(part, ranks * longest_overhang));
}

/// Number of parts of `part` bytes of a slab of `bytes`, cut among `ranks` ranks at edges of chunks; 0 ranks:
/// anywhere.
constexpr int parts_of(std::int64_t bytes, int ranks, std::int64_t part) {
  const std::int64_t most = without_overhang(ranks, part);
  return static_cast<int>(std::max<std::int64_t>(1, (bytes + most - 1) / most));
}

/// Most bytes that the pieces of one part can have together.
constexpr std::int64_t longest_part(int ranks, std::int64_t part) {
  return without_overhang(ranks, part) + ranks * longest_overhang;
}

/// Bytes of the parts, all but the last, of a message that goes in as many as its length needs: alike, and
/// whole vectors.
constexpr std::int64_t alike_parts(std::int64_t bytes, std::int64_t part) {
  constexpr std::int64_t vector = 64;
  const std::int64_t parts = parts_of(bytes, 0, part), each = (bytes + parts - 1) / parts;
  return (each + vector - 1) / vector * vector;
}

}  // namespace mindpipe
