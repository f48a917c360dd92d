#include "cuda/cudnn_planner.h"

/// In a build without cuDNN's frontend all attention is computed by our own kernels.
namespace mindpipe {

std::unique_ptr<cuda::CudnnPlanner> cuda::make_cudnn_planner() { return nullptr; }
std::unique_ptr<AttentionPlanner> make_planner_on_paper(const GpuDescription&, std::string& why_not) {
  why_not = "this build has no cuDNN frontend, which scripts/setup.sh fetches";
  return nullptr;
}

}  // namespace mindpipe
