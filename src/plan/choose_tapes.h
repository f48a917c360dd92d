#pragma once
#include <algorithm>
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

/// Slots that a swapped block has on the device, of micro-batches in flight.
inline int slots_of_swapped(int in_flight) { return std::min(in_flight, 2); }

/// Bytes of the tapes of each stage. `in_flight`: micro-batches that a chunk keeps at once.
std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const TapeChoice& choice);

/// What may be chosen.
struct TapeRules {
  bool recomputes = true, swaps = false;  ///< whether each is chosen; else it is as `given` says
  TapeChoice given = {};
  /// Share of a stage's passes while which copies count as hidden; 0: nothing is swapped; `smallest`: what
  /// takes the fewest bytes, however long.
  double hidden = 0;
  Link copies = {};
  std::vector<std::int64_t> host_limits =
      {};  ///< bytes of each stage's segments on the host; empty: no limit
  static constexpr double smallest = -1;

  /// Whether this may become of a block that can be recomputed and swapped, of so many in flight.
  bool allow(TapeFate fate, int block, int in_flight) const;
};

/// The choice that gives each block its fate.
TapeChoice choice_of(const std::vector<TapeFate>& fates, const TapeRules& rules);

/// Which blocks to compute again and which to swap so that each stage's tapes fit into `limits`, with the
/// least time of its passes and copies, then the fewest bytes copied: exact while a stage's kinds of blocks
/// have few combinations, else by the time that a byte costs. Of one kind the lowest blocks of a chunk are
/// swapped, since copies travel under the passes of those above; then come those computed again, whose second
/// forwards find the memory of those above. `kept` and `again`: the model with no block computed again and
/// with all; `in_flight`: micro-batches that a chunk keeps at once. None: nothing is enough.
std::optional<TapeChoice> choose_tapes(const Outline& kept, const Outline& again,
                                       const std::vector<int>& in_flight,
                                       const std::vector<std::int64_t>& limits, const TapeRules& rules);

}  // namespace mindpipe
