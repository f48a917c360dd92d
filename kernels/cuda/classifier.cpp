#include "operations/classifier.h"
#include "cuda/device/classifier_kernels.h"
#include "cuda/gpu_operations.h"

namespace mindpipe {
void GpuOperations::run(const RowMaximumOperands& o) {
  const LogitShard shard = o.checked();
  cuda::row_maximum(dtype_index(o.logits.dtype), o.logits.data, shard, o.maximum.data, o.logits.rows(),
                    stream());
}

void GpuOperations::run(const SoftmaxSumsOperands& o) {
  const LogitShard shard = o.checked();
  cuda::softmax_sums(dtype_index(o.logits.dtype), o.logits.data, shard, o.targets.as<std::int32_t>(),
                     o.maximum.data, o.sums.data, o.of_target.data, o.total.data, o.logits.rows(), stream());
}

void GpuOperations::run(const TargetRankOperands& o) {
  const LogitShard shard = o.checked();
  cuda::target_rank(dtype_index(o.logits.dtype), o.logits.data, shard, o.targets.as<std::int32_t>(),
                    o.of_target.data, o.ranks.data, o.logits.rows(), stream());
}

void GpuOperations::run(const CountHitsOperands& o) {
  cuda::count_hits(dtype_index(o.ranks.dtype), o.targets.as<std::int32_t>(), o.ranks.data, o.checked(),
                   o.hits.as<double>(), stream());
}

void GpuOperations::run(const CrossEntropyOperands& o) {
  const TargetShares shares = o.checked();
  const cuda::LossCall call{o.targets.as<std::int32_t>(),
                            o.maximum.data,
                            o.sums.data,
                            o.of_target.data,
                            o.total.data,
                            shares.of_target,
                            shares.of_each};
  cuda::cross_entropy(dtype_index(o.losses.dtype), call, o.losses.data, o.targets.count(), stream());
}

void GpuOperations::run(const CrossEntropyBackwardOperands& o) {
  const LogitShard shard = o.checked();
  const TargetShares shares = o.shares();
  const cuda::LogitGradient call{o.targets.as<std::int32_t>(),
                                 o.logits.data,
                                 o.maximum.data,
                                 o.sums.data,
                                 o.factor,
                                 shares.of_each,
                                 shares.of_target};
  cuda::cross_entropy_backward(dtype_index(o.dlogits.dtype), call, shard, o.dlogits.data, o.logits.rows(),
                               stream());
}

void GpuOperations::run(const SoftmaxCrossEntropyOperands& o) {
  const LogitShard shard = o.checked();
  const TargetShares of_loss = o.loss().checked(), of_gradient = o.gradient().shares();
  const cuda::SoftmaxCall call{o.targets.as<std::int32_t>(),
                               o.logits.data,
                               shard.cols,
                               shard.valid,
                               of_loss.of_target,
                               of_loss.of_each,
                               o.factor,
                               of_gradient.of_each,
                               of_gradient.of_target};
  cuda::softmax_cross_entropy(dtype_index(o.dlogits.dtype), call, o.losses.data, o.dlogits.data,
                              o.logits.rows(), shared_of_block_, stream());
}

}  // namespace mindpipe
