#include "trace/step_trace.h"

namespace mindpipe {

std::vector<std::string> StepTrace::nodes() const {
  if (ranks_per_node == 0) return hosts;
  std::vector<std::string> nodes;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    nodes.push_back(std::to_string(rank / ranks_per_node));
  return nodes;
}

}  // namespace mindpipe
