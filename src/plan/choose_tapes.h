#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "config/chosen_blocks.h"
#include "program/clock/simulate.h"
#include "program/outline.h"

namespace mindpipe {

/// What becomes of a block's tape.
enum class TapeFate : std::uint8_t { kept, again, away };

/// What becomes of the tapes of blocks: some are made again, some wait on the host, the others are kept.
struct TapeChoice {
  ChosenBlocks recompute, swap;
  bool operator==(const TapeChoice&) const = default;
};

/// Bytes of the tapes of each stage. `in_flight`: micro-batches that a chunk keeps at once.
std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const TapeChoice& choice);

/// What may be chosen. Copies of a stage count as hidden while they take at most `hidden` of the time of its
/// passes; 0: nothing is swapped.
struct TapeRules {
  bool recomputes = true;
  double hidden = 0;
  Link copies = {};
};

/// Which blocks to compute again and which to swap so that each stage's tapes fit into `room` bytes, with the
/// least time of its passes and copies, then the fewest bytes copied: exact while a stage's kinds of blocks
/// have few combinations, else by the time that a byte costs. Of one kind the lowest blocks of a chunk are
/// swapped, since copies travel under the passes of those above; then come those computed again, whose second
/// forwards find the room of those above. `kept` and `again`: the model with no block computed again and with
/// all; `in_flight`: micro-batches that a chunk keeps at once. None: nothing is enough.
std::optional<TapeChoice> choose_tapes(const Outline& kept, const Outline& again,
                                       const std::vector<int>& in_flight,
                                       const std::vector<std::int64_t>& room, const TapeRules& rules);

}  // namespace mindpipe
