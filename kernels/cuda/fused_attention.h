#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <set>

#include "core/memory.h"
#include "plans/planned_attention.h"

namespace mindpipe::cuda {

/// Attention by cuDNN's graphs: one call, the first plan of its heuristic, a backward that is deterministic.
/// A plan is made once in a process for each question; one that wants more memory than the limit is not used.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  virtual int version() const = 0;
  /// Makes plans before the first step, since that takes memory and waits; others are made when asked for.
  virtual void plan(const std::set<PlannedAttention>& questions) = 0;
  /// Computes a pass; false where cuDNN refuses the question, and nothing has been done then.
  virtual bool forward(const AttentionCall& call, cudaStream_t stream) = 0;
  virtual bool backward(const AttentionCall& call, cudaStream_t stream) = 0;
};
/// None where make_cudnn_planner makes none.
std::unique_ptr<FusedAttention> make_fused_attention(Memory& memory, const AttentionLimit& limit);

}  // namespace mindpipe::cuda
