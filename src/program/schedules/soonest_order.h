#pragma once
#include <cstdint>

#include "program/schedules/pass_clock.h"

namespace mindpipe {

/// What a stage of a V runs of all that it could begin at the same time.
struct SoonestRule {
  int ahead = 1;  ///< micro-batches that a stage may have begun and not ended in the chunk that goes down
  bool forwards_first = false;  ///< until it has begun so many; else backwards come first
  std::int64_t most_tapes = 0;  ///< bytes of a stage
};

/// The order of a V in which each stage runs what it can begin soonest, with weight gradients in gaps that
/// hold them and before what would need more bytes. A forward that goes down leaves room for one that goes
/// up. Empty where the bytes let no stage go on.
Order soonest_order(const PassClock& clock, const SoonestRule& rule);

}  // namespace mindpipe
