#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "program/outline.h"

namespace mindpipe {

// What follows from Outline::swapped: which blocks' part of a tape, the segment, waits on the host.

inline bool is_swapped(const Outline& outline, int block) {
  return !outline.swapped.empty() && outline.swapped[block] != 0;
}
bool swaps_blocks(const Outline& outline);
/// The pieces of a pass over blocks [first, last): each block that is swapped by itself, and what stands
/// between these together.
std::vector<std::pair<int, int>> pieces_of(const Outline& outline, int first, int last);
/// What a micro-batch has in the segment of a block: its input, and what its forward keeps but its output,
/// unless that leaves the chunk.
std::int64_t bytes_in_segment(const Outline& outline, int block);
/// What it has there where the block's run ends before `last`, whatever the cuts.
std::int64_t bytes_in_segment(const Outline& outline, int block, int last);
/// What a micro-batch keeps of a chunk elsewhere.
std::int64_t bytes_beside_segments(const Outline& outline, int chunk);

}  // namespace mindpipe
