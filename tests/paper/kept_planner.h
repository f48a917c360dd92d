#pragma once
#include <memory>

#include "plans/attention_planner.h"

namespace mindpipe {

/// A planner whose answers about a GPU are kept in the folder that MINDPIPE_KEPT_ANSWERS names, each under a
/// hash of the library's version, the GPU's description, the graph, and the sources that ask. The planner
/// itself where no folder is named.
std::unique_ptr<AttentionPlanner> keeping_answers(std::unique_ptr<AttentionPlanner> planner,
                                                  const GpuDescription& gpu);

/// The name under which an answer is kept.
std::string key_of_answer(int version, const GpuDescription& gpu, const AttentionGraph& graph,
                          const std::string& sources);

}  // namespace mindpipe
