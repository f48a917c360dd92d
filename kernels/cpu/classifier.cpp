#include "cpu/simd/classifier_kernels.h"

#include <cmath>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
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

template <class T>
void losses_of(const Tensor& targets, const Tensor& maximum, const Tensor& sums, const Tensor& of_target, const Tensor& total,
               double smoothing, std::int64_t vocabulary, const Tensor& losses, std::int64_t first, std::int64_t last) {
  const double spread = smoothing / static_cast<double>(vocabulary);
  for (std::int64_t n = first; n < last; ++n) {
    const double loss = static_cast<double>(maximum.as<T>()[n]) + std::log(static_cast<double>(sums.as<T>()[n])) -
                        (1 - smoothing) * static_cast<double>(of_target.as<T>()[n]) - spread * static_cast<double>(total.as<T>()[n]);
    losses.as<T>()[n] = targets.as<std::int32_t>()[n] < 0 ? T(0) : static_cast<T>(loss);
  }
}

}  // namespace

void CpuBackend::row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) {
  const int kind = logit_slot(logits, "row_maximum");
  const LogitShard shard = shard_of(logits, valid, 0, "row_maximum");
  require(maximum, logits.rows(), logits.dtype, "row_maximum", "maximum");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).row_maximum[kind];
  in_ranges(threads_, logits.rows(), row_grain(shard.cols),
            [&](auto first, auto last) { kernel(logits.data, shard, maximum.data, first, last); });
  progress();
}

void CpuBackend::row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets, const Tensor& maximum,
                          const Tensor& sums, const Tensor& of_target, const Tensor& total) {
  const int kind = logit_slot(logits, "row_sums");
  const LogitShard shard = shard_of(logits, valid, first_column, "row_sums");
  const std::int64_t rows = logits.rows();
  require(targets, rows, DType::i32, "row_sums", "targets");
  require(maximum, rows, logits.dtype, "row_sums", "maximum");
  require(sums, rows, logits.dtype, "row_sums", "sums");
  require(of_target, rows, logits.dtype, "row_sums", "of_target");
  require(total, rows, logits.dtype, "row_sums", "total");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).row_sums[kind];
  in_ranges(threads_, rows, row_grain(shard.cols), [&](auto first, auto last) {
    kernel(logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data, of_target.data, total.data, first, last);
  });
  progress();
}

void CpuBackend::cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums, const Tensor& of_target,
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
  const auto losses_in = losses.dtype == DType::f32 ? losses_of<float> : losses_of<double>;
  losses_in(targets, maximum, sums, of_target, total, smoothing, vocabulary, losses, 0, rows);
  progress();
}

void CpuBackend::cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column, const Tensor& targets,
                                        const Tensor& maximum, const Tensor& sums, double factor, double smoothing, std::int64_t vocabulary,
                                        const Tensor& dlogits) {
  const LogitShard shard = shard_of(logits, valid, first_column, "cross_entropy_backward");
  const std::int64_t rows = logits.rows();
  MP_CHECK(vocabulary > 0, "cross_entropy_backward: a vocabulary of {}", vocabulary);
  require_dtype(logits, wide(dlogits.dtype), "cross_entropy_backward", "logits");
  require(targets, rows, DType::i32, "cross_entropy_backward", "targets");
  require(maximum, rows, logits.dtype, "cross_entropy_backward", "maximum");
  require(sums, rows, logits.dtype, "cross_entropy_backward", "sums");
  require_count(dlogits, logits.count(), "cross_entropy_backward", "dlogits");
  const double uniform = factor * smoothing / static_cast<double>(vocabulary), of_target = factor * (1 - smoothing);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).backward[slot(dlogits.dtype)];
  in_ranges(threads_, rows, row_grain(shard.cols), [&](auto first, auto last) {
    kernel(logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data, factor, uniform, of_target, dlogits.data, first, last);
  });
  progress();
}

}  // namespace mindpipe
