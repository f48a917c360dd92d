#include "cuda/device/classifier_kernels.h"
#include "cuda/gpu_operations.h"
#include "operands.h"

namespace mindpipe {
namespace {

/// Logits are f32, f64 in gradient checks: the first two slots.
int logit_slot(const Tensor& logits, const char* operation) {
  MP_CHECK(logits.dtype == DType::f32 || logits.dtype == DType::f64, "{}: logits are {} (f32 or f64)", operation, name_of(logits.dtype));
  return slot(logits.dtype);
}

LogitShard shard_of(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const char* operation) {
  MP_CHECK(valid >= 0 && valid <= logits.cols(), "{}: {} valid columns of {}", operation, valid, logits.cols());
  return {logits.cols(), valid, first_column};
}

}  // namespace

void GpuOperations::row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) {
  const int kind = logit_slot(logits, "row_maximum");
  require(maximum, logits.rows(), logits.dtype, "row_maximum", "maximum");
  cuda::row_maximum(kind, logits.data, shard_of(logits, valid, 0, "row_maximum"), maximum.data, logits.rows(), stream());
  done("row_maximum");
}

void GpuOperations::row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets,
                             const Tensor& maximum, const Tensor& sums, const Tensor& of_target, const Tensor& total) {
  const int kind = logit_slot(logits, "row_sums");
  const LogitShard shard = shard_of(logits, valid, first_column, "row_sums");
  const std::int64_t rows = logits.rows();
  require(targets, rows, DType::i32, "row_sums", "targets");
  require(maximum, rows, logits.dtype, "row_sums", "maximum");
  require(sums, rows, logits.dtype, "row_sums", "sums");
  require(of_target, rows, logits.dtype, "row_sums", "of_target");
  require(total, rows, logits.dtype, "row_sums", "total");
  cuda::row_sums(kind, logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data, of_target.data, total.data, rows, stream());
  done("row_sums");
}

void GpuOperations::cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums, const Tensor& of_target,
                                  const Tensor& total, double smoothing, std::int64_t vocabulary, const Tensor& losses) {
  const std::int64_t rows = targets.count();
  MP_CHECK(losses.dtype == DType::f32 || losses.dtype == DType::f64, "cross_entropy: losses are {} (f32 or f64)", name_of(losses.dtype));
  MP_CHECK(vocabulary > 0, "cross_entropy: a vocabulary of {}", vocabulary);
  require_dtype(targets, DType::i32, "cross_entropy", "targets");
  require(maximum, rows, losses.dtype, "cross_entropy", "maximum");
  require(sums, rows, losses.dtype, "cross_entropy", "sums");
  require(of_target, rows, losses.dtype, "cross_entropy", "of_target");
  require(total, rows, losses.dtype, "cross_entropy", "total");
  require_count(losses, rows, "cross_entropy", "losses");
  const cuda::LossCall call{targets.as<std::int32_t>(),
                            maximum.data,
                            sums.data,
                            of_target.data,
                            total.data,
                            1 - smoothing,
                            smoothing / static_cast<double>(vocabulary)};
  cuda::cross_entropy(slot(losses.dtype), call, losses.data, rows, stream());
  done("cross_entropy");
}

void GpuOperations::cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets,
                                           const Tensor& maximum, const Tensor& sums, double factor, double smoothing,
                                           std::int64_t vocabulary, const Tensor& dlogits) {
  const LogitShard shard = shard_of(logits, valid, first_column, "cross_entropy_backward");
  const std::int64_t rows = logits.rows();
  MP_CHECK(vocabulary > 0, "cross_entropy_backward: a vocabulary of {}", vocabulary);
  require_dtype(logits, wide(dlogits.dtype), "cross_entropy_backward", "logits");
  require(targets, rows, DType::i32, "cross_entropy_backward", "targets");
  require(maximum, rows, logits.dtype, "cross_entropy_backward", "maximum");
  require(sums, rows, logits.dtype, "cross_entropy_backward", "sums");
  require_count(dlogits, logits.count(), "cross_entropy_backward", "dlogits");
  const cuda::LogitGradient call{
      targets.as<std::int32_t>(), logits.data, maximum.data, sums.data, factor, factor * smoothing / static_cast<double>(vocabulary),
      factor * (1 - smoothing)};
  cuda::cross_entropy_backward(slot(dlogits.dtype), call, shard, dlogits.data, rows, stream());
  done("cross_entropy_backward");
}

}  // namespace mindpipe
