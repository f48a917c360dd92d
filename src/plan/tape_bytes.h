#pragma once
#include <algorithm>
#include <cstdint>

#include "program/outline.h"

namespace mindpipe {

/// What a micro-batch's tape of some blocks takes: behind its forward, and at most.
struct TapeBytes {
  std::int64_t kept = 0, most = 0;
};

/// What leaves a block for the next one; 0: nothing that a tape keeps.
inline std::int64_t bytes_leaving(const Outline& outline, int block) {
  return block + 1 < outline.all_blocks() ? outline.cuts[block + 1].activation : 0;
}

/// Bytes of the buffers for what crosses the cuts of blocks [first, last): two that are filled in turn at
/// either end, each way.
inline std::int64_t bytes_of_buffers(const Outline& outline, int first, int last) {
  return 4 * (outline.cuts[first].activation + bytes_leaving(outline, last - 1));
}

/// The tape of blocks [first, last): what enters them, and what each keeps, its output among it. A block of
/// which `again(block)` says that it is computed again keeps its output alone; its second forward lies above
/// what the blocks below it keep. Of those that are `away`, swapped, nothing lies there, nor what enters
/// them. `whole`: as where backwards are whole.
template <class Again, class Away>
TapeBytes tape_bytes(const Outline& outline, int first, int last, const Again& again, bool whole,
                     const Away& away) {
  TapeBytes bytes;
  for (int block = first; block < last; ++block) {
    if (away(block)) continue;
    const BlockCost& cost = outline.cost(block);
    const std::int64_t leaves = bytes_leaving(outline, block),
                       saved = cost.saved - (whole ? cost.split_only : 0);
    const bool goes_away = block + 1 < last && away(block + 1);
    if (block == first || away(block - 1)) bytes.kept += outline.cuts[block].activation;
    if (goes_away) bytes.kept -= leaves;
    bytes.most = std::max(bytes.most, bytes.kept + saved);
    bytes.kept += again(block) ? leaves : saved;
  }
  bytes.most = std::max(bytes.most, bytes.kept);
  return bytes;
}

}  // namespace mindpipe
