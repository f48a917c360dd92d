#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mindpipe {

/// Puts the sum over all ranks of a group in place of each number. Collective over the group.
using SumOverGroup = std::function<void(std::vector<std::int64_t>& numbers)>;

/// What this rank's clock lacks of the first rank's, in nanoseconds. Collective.
std::int64_t clock_shift(bool is_first, const SumOverGroup& sum);

/// Brings each rank's text to all, one after the other in pieces, and calls `write` with these. Collective
/// over the group.
void gather_texts(const std::string& own, int rank, int ranks, const SumOverGroup& sum,
                  const std::function<void(const std::string& piece)>& write);

}  // namespace mindpipe
