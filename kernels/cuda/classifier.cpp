#include "classifier_operands.h"
#include "cuda/device/classifier_kernels.h"
#include "cuda/gpu_operations.h"

namespace mindpipe {
void GpuOperations::row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) {
  const LogitShard shard = row_maximum_shard(logits, valid, maximum);
  cuda::row_maximum(slot(logits.dtype), logits.data, shard, maximum.data, logits.rows(), stream());
  done("row_maximum");
}

void GpuOperations::row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                             const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                             const Tensor& of_target, const Tensor& total) {
  const LogitShard shard =
      row_sums_shard(logits, valid, first_column, targets, maximum, sums, of_target, total);
  cuda::row_sums(slot(logits.dtype), logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data,
                 of_target.data, total.data, logits.rows(), stream());
  done("row_sums");
}

void GpuOperations::cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                                  const Tensor& of_target, const Tensor& total, double smoothing,
                                  std::int64_t vocabulary, const Tensor& losses) {
  const TargetShares shares =
      cross_entropy_shares(targets, maximum, sums, of_target, total, smoothing, vocabulary, losses);
  const cuda::LossCall call{targets.as<std::int32_t>(), maximum.data,  sums.data, of_target.data, total.data,
                            shares.of_target,           shares.of_each};
  cuda::cross_entropy(slot(losses.dtype), call, losses.data, targets.count(), stream());
  done("cross_entropy");
}

void GpuOperations::cross_entropy_backward(const Tensor& logits, std::int64_t valid,
                                           std::int64_t first_column, const Tensor& targets,
                                           const Tensor& maximum, const Tensor& sums, double factor,
                                           double smoothing, std::int64_t vocabulary, const Tensor& dlogits) {
  const LogitShard shard =
      cross_entropy_backward_shard(logits, valid, first_column, targets, maximum, sums, dlogits);
  const TargetShares shares = target_shares(factor, smoothing, vocabulary, "cross_entropy_backward");
  const cuda::LogitGradient call{targets.as<std::int32_t>(),
                                 logits.data,
                                 maximum.data,
                                 sums.data,
                                 factor,
                                 shares.of_each,
                                 shares.of_target};
  cuda::cross_entropy_backward(slot(dlogits.dtype), call, shard, dlogits.data, logits.rows(), stream());
  done("cross_entropy_backward");
}

}  // namespace mindpipe
