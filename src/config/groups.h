#pragma once
#include <vector>

namespace mindpipe {

/// Sizes of the groups in which a step's micro-batches pass through the chunks of a stage, the first group
/// first, forwards and backwards apart. Empty: not said.
struct MicroBatchGroups {
  std::vector<int> forward, backward;
  bool empty() const { return forward.empty() && backward.empty(); }
  bool operator==(const MicroBatchGroups&) const = default;
};

}  // namespace mindpipe
