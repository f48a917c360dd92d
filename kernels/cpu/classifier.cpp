#include "cpu/simd/classifier_kernels.h"

#include <cmath>

#include "classifier_operands.h"
#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"

namespace mindpipe {
namespace {

template <class T>
void losses_of(const Tensor& targets, const Tensor& maximum, const Tensor& sums, const Tensor& of_target,
               const Tensor& total, const TargetShares& shares, const Tensor& losses) {
  for (std::int64_t n = 0; n < targets.count(); ++n) {
    const double loss = static_cast<double>(maximum.as<T>()[n]) +
                        std::log(static_cast<double>(sums.as<T>()[n])) -
                        shares.of_target * static_cast<double>(of_target.as<T>()[n]) -
                        shares.of_each * static_cast<double>(total.as<T>()[n]);
    losses.as<T>()[n] = targets.as<std::int32_t>()[n] < 0 ? T(0) : static_cast<T>(loss);
  }
}

}  // namespace

void CpuBackend::row_maximum(const Tensor& logits, std::int64_t valid, const Tensor& maximum) {
  const LogitShard shard = row_maximum_shard(logits, valid, maximum);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).row_maximum[slot(logits.dtype)];
  in_ranges(threads_, logits.rows(), row_grain(shard.cols),
            [&](auto first, auto last) { kernel(logits.data, shard, maximum.data, first, last); });
  progress();
}

void CpuBackend::row_sums(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                          const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                          const Tensor& of_target, const Tensor& total) {
  const LogitShard shard =
      row_sums_shard(logits, valid, first_column, targets, maximum, sums, of_target, total);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).row_sums[slot(logits.dtype)];
  in_ranges(threads_, logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    kernel(logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data, of_target.data,
           total.data, first, last);
  });
  progress();
}

void CpuBackend::cross_entropy(const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                               const Tensor& of_target, const Tensor& total, double smoothing,
                               std::int64_t vocabulary, const Tensor& losses) {
  const TargetShares shares =
      cross_entropy_shares(targets, maximum, sums, of_target, total, smoothing, vocabulary, losses);
  const auto losses_in = losses.dtype == DType::f32 ? losses_of<float> : losses_of<double>;
  losses_in(targets, maximum, sums, of_target, total, shares, losses);
  progress();
}

void CpuBackend::cross_entropy_backward(const Tensor& logits, std::int64_t valid, std::int64_t first_column,
                                        const Tensor& targets, const Tensor& maximum, const Tensor& sums,
                                        double factor, double smoothing, std::int64_t vocabulary,
                                        const Tensor& dlogits) {
  const LogitShard shard =
      cross_entropy_backward_shard(logits, valid, first_column, targets, maximum, sums, dlogits);
  const TargetShares shares = target_shares(factor, smoothing, vocabulary, "cross_entropy_backward");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).backward[slot(dlogits.dtype)];
  in_ranges(threads_, logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    kernel(logits.data, shard, targets.as<std::int32_t>(), maximum.data, sums.data, factor, shares.of_each,
           shares.of_target, dlogits.data, first, last);
  });
  progress();
}

}  // namespace mindpipe
