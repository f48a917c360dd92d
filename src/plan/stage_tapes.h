#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/choose_tapes.h"
#include "plan/tape_bytes.h"
#include "program/swapped_blocks.h"

namespace mindpipe {

/// Blocks [first, last) of a stage, and micro-batches that it keeps of them at once.
struct BlocksInFlight {
  int first = 0, last = 0, in_flight = 1;
};

/// What becomes of the tapes of a stage.
struct StageTapes {
  std::vector<TapeFate> fates;  ///< one for each of its blocks, run after run
  double time = 0;              ///< what a micro-batch's passes take, or its copies if these take longer
  std::int64_t copied = 0;      ///< bytes of a micro-batch that go to the host
  std::int64_t bytes = 0;       ///< what the tapes of all micro-batches in flight have on the device
};

/// Which blocks of one stage to compute again and which to swap, as choose_tapes says. None: nothing is
/// enough. (The smallest tapes may still be too large.)
std::optional<StageTapes> choose_stage_tapes(const Outline& kept, const Outline& again, int stage,
                                             const std::vector<BlocksInFlight>& runs, std::int64_t limit,
                                             const TapeRules& rules);

/// Bytes of the tapes of a run, of all micro-batches in flight together.
template <class Fate>
std::int64_t bytes_of_run(const Outline& outline, const BlocksInFlight& run, const Fate& fate_of) {
  std::int64_t bytes = run.in_flight * tape_bytes(
                                           outline, run.first, run.last,
                                           [&](int block) { return fate_of(block) == TapeFate::again; },
                                           false, [&](int block) { return fate_of(block) == TapeFate::away; })
                                           .most;
  for (int block = run.first; block < run.last; ++block)
    if (fate_of(block) == TapeFate::away)
      bytes += slots_of_swapped(run.in_flight) * bytes_in_segment(outline, block, run.last);
  return bytes;
}

}  // namespace mindpipe
