#pragma once
#include <functional>
#include <vector>

#include "trace/chrome_trace.h"

namespace mindpipe {

/// Puts the sum over all ranks of a group in place of each number. Collective over the group.
using SumOverGroup = std::function<void(std::vector<std::int64_t>& numbers)>;

/// What this rank's clock lacks of the first rank's, in nanoseconds. Collective.
std::int64_t clock_shift(bool is_first, const SumOverGroup& sum);

/// Brings each rank's text to all, one after the other in pieces, and calls `write` with these. Collective
/// over the group.
void gather_texts(const std::string& own, int rank, int ranks, const SumOverGroup& sum,
                  const std::function<void(const std::string& piece)>& write);

/// The recorded steps of one pipeline, brought together on all ranks of a group: its stages in order, without
/// rank and name, on the first rank's clock. A rank of that pipeline brings what it recorded as `stage`,
/// `bytes_of` each action of its list and its clock's `shift`; the others say stage -1. All have recorded as
/// many steps. Collective over the group.
std::vector<TracedRank> gather_spans(const Program& program, const Recorder& recorder, int stage,
                                     const std::function<std::int64_t(int action)>& bytes_of,
                                     std::int64_t shift, const SumOverGroup& sum);

}  // namespace mindpipe
