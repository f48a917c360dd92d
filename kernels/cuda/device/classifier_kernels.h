#pragma once
#include <cuda_runtime.h>

#include "operations/calls.h"

/// Starts kernels on operands that have been checked. `type` is the dtype of the logits, f64 or f32; of
/// `backward`, that of the gradient.
namespace mindpipe::cuda {

void row_maximum(int type, const void* logits, const LogitShard& shard, void* maximum, std::int64_t rows,
                 cudaStream_t stream);
void softmax_sums(int type, const void* logits, const LogitShard& shard, const std::int32_t* targets,
                  const void* maximum, void* sums, void* of_target, void* total, std::int64_t rows,
                  cudaStream_t stream);
void target_rank(int type, const void* logits, const LogitShard& shard, const std::int32_t* targets,
                 const void* of_target, void* ranks, std::int64_t rows, cudaStream_t stream);
/// `type`: of the ranks.
void count_hits(int type, const std::int32_t* targets, const void* ranks, const TargetList& list,
                double* hits, cudaStream_t stream);
/// losses = maximum + log(sum) - of_target' target logit - uniform total, 0 where the target is negative
struct LossCall {
  const std::int32_t* targets;
  const void *maximum, *sums, *of_target, *total;
  double of_logit, uniform;  ///< 1 - smoothing; smoothing / vocabulary
};
void cross_entropy(int type, const LossCall& call, void* losses, std::int64_t rows, cudaStream_t stream);
/// Rows of `cols` logits, of which the first `valid` are the vocabulary.
struct SoftmaxCall {
  const std::int32_t* targets;
  const void* logits;
  std::int64_t cols, valid;
  double of_logit, uniform;             ///< the loss's, as in LossCall
  double factor, less, less_at_target;  ///< the gradient's, as in LogitGradient
};
/// Losses and gradients in one walk over the logits where a block that has `most_shared` bytes of memory can
/// hold a row, else in two. `type`: of the gradient.
void softmax_cross_entropy(int type, const SoftmaxCall& call, void* losses, void* dlogits, std::int64_t rows,
                           std::size_t most_shared, cudaStream_t stream);
/// dlogits = exp(logit - maximum) factor / sum - uniform, less `of_target` in the target's column
struct LogitGradient {
  const std::int32_t* targets;
  const void *logits, *maximum, *sums;
  double factor, uniform, of_target;
};
void cross_entropy_backward(int type, const LogitGradient& call, const LogitShard& shard, void* dlogits,
                            std::int64_t rows, cudaStream_t stream);

}  // namespace mindpipe::cuda
