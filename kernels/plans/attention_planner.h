#pragma once
#include <memory>
#include <string>

#include "plans/attention_graph.h"

namespace mindpipe {

/// What a library says when it is asked for a plan.
struct AttentionAnswer {
  bool is_planned = false;
  bool is_supported = false;  ///< an engine says that it can; whether its plan can be built is known last
  std::string engine;         ///< the library's name of its kernel, with its settings: "eng6_k24=26"
  std::size_t bytes = 0;      ///< working memory, without lengths
  std::string refusal;        ///< the library's own words
  /// Refused because something is missing here that the device's own machine has: no answer to the question.
  bool is_unanswered = false;
};

/// Who plans the graphs: a library for the GPU that is here, or for one that is described.
class AttentionPlanner {
 public:
  virtual ~AttentionPlanner() = default;
  virtual int version() const = 0;  ///< 91900 is 9.19.0
  virtual AttentionAnswer ask(const AttentionGraph& graph) = 0;
};

/// A GPU as cuDNN describes one: its name in data/devices, and what the file says.
struct GpuDescription {
  std::string name;
  int capability = 0;  ///< 90 is compute capability 9.0
  int multiprocessors = 0;
  std::string properties;
};
/// All of data/devices, by name; compiled in.
const std::vector<GpuDescription>& described_gpus();
const GpuDescription* find_gpu(const std::string& name);  ///< null: there is none of that name

/// cuDNN, planning for a GPU that need not be here; none, with the reason in `why_not`, where the library or
/// what it wants before it plans is not here. Opening it takes half a second, a plan about as long.
std::unique_ptr<AttentionPlanner> make_planner_on_paper(const GpuDescription& gpu, std::string& why_not);

}  // namespace mindpipe
