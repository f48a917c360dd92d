#pragma once
#include <cuda_runtime.h>

#include <map>

#include "plans/attention_planner.h"

namespace mindpipe::cuda {

/// A plan of cuDNN's that the GPU here can run.
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  using Addresses = std::map<AttentionGraph::Id, void*>;
  /// Puts it into the stream; what cuDNN says when it fails, else nothing.
  virtual std::string run(const Addresses& operands, void* workspace, cudaStream_t stream) = 0;
};

/// cuDNN, planning for the GPU of this thread.
class CudnnPlanner : public AttentionPlanner {
 public:
  /// None where it is refused, with the reason in `answer`.
  virtual std::unique_ptr<CudnnPlan> plan(const AttentionGraph& graph, AttentionAnswer& answer) = 0;
  /// The GPU as cuDNN describes it, in the form of data/devices.
  virtual std::string properties() = 0;
};
/// None in a build without cuDNN's frontend, and where libcudnn or libcudart cannot be used.
std::unique_ptr<CudnnPlanner> make_cudnn_planner();

}  // namespace mindpipe::cuda
