#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "config/chosen_blocks.h"
#include "program/outline.h"

namespace mindpipe {

/// Bytes of the tapes of each stage. `in_flight`: micro-batches that a chunk keeps at once.
std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const ChosenBlocks& recomputed);

/// Which blocks to compute again so that each stage's tapes fit into `room` bytes, with the least time: exact
/// while a stage's kinds of blocks have few combinations, else by the time that a byte costs. Of one kind the
/// lowest blocks of a chunk come first, whose second forwards find the room of those above. `kept` and
/// `again`: the model with no block computed again and with all; `in_flight`: micro-batches that a chunk
/// keeps at once. None: not even all of them are enough.
std::optional<ChosenBlocks> choose_recomputed(const Outline& kept, const Outline& again,
                                              const std::vector<int>& in_flight,
                                              const std::vector<std::int64_t>& room);

}  // namespace mindpipe
