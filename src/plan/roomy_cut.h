#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/choose_tapes.h"

namespace mindpipe {

/// The first block of each stage but the first in a cut whose stages fit into `limit` bytes by what is known
/// of blocks alone, with the smallest tapes that the rules allow: of such cuts the one whose slowest stage is
/// fastest. `kept`: the model with no block computed again, one chunk a stage; `changeable`: whether each
/// block's tape can be anything but kept; `in_flight`: micro-batches that a stage keeps at once. None: no cut
/// fits.
std::optional<std::vector<int>> roomy_cut(const Outline& kept, const std::vector<char>& changeable,
                                          const std::vector<int>& in_flight, const TapeRules& rules,
                                          std::int64_t limit);

}  // namespace mindpipe
