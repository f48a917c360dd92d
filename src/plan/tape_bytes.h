#pragma once
#include <algorithm>
#include <cstdint>

#include "program/outline.h"

namespace mindpipe {

/// What a micro-batch's tape of some blocks takes: behind its forward, and at most.
struct TapeBytes {
  std::int64_t kept = 0, most = 0;
};

/// The tape of blocks [first, last), where `again(block)` says which keep their input alone: the second
/// forward of one of these lies above what the blocks below it keep. Of those that are `away`, swapped,
/// nothing lies there. `whole`: as where backwards are whole.
template <class Again, class Away>
TapeBytes tape_bytes(const Outline& outline, int first, int last, const Again& again, bool whole,
                     const Away& away) {
  TapeBytes bytes;
  for (int block = first; block < last; ++block) {
    if (away(block)) continue;
    const BlockCost& cost = outline.cost(block);
    const std::int64_t saved = cost.saved - (whole ? cost.split_only : 0);
    bytes.most = std::max(bytes.most, bytes.kept + saved);
    bytes.kept += again(block) ? outline.cuts[block].activation : saved;
  }
  return bytes;
}

}  // namespace mindpipe
