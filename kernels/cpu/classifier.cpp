#include "cpu/simd/classifier_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "operations/classifier.h"

namespace mindpipe {
namespace {

template <class T>
void losses_of(const CrossEntropyOperands& o, const TargetShares& shares) {
  for (std::int64_t n = 0; n < o.targets.count(); ++n) {
    const double loss = static_cast<double>(o.maximum.as<T>()[n]) +
                        std::log(static_cast<double>(o.sums.as<T>()[n])) -
                        shares.of_target * static_cast<double>(o.of_target.as<T>()[n]) -
                        shares.of_each * static_cast<double>(o.total.as<T>()[n]);
    o.losses.as<T>()[n] = o.targets.as<std::int32_t>()[n] < 0 ? T(0) : static_cast<T>(loss);
  }
}

template <class T>
void find_place(const MaximumPlaceOperands& o, const LogitShard& shard, std::int64_t n) {
  const T *row = o.logits.as<T>() + n * shard.cols, top = o.maximum.as<T>()[n];
  const std::int64_t column = std::find(row, row + shard.valid, top) - row;
  o.place.as<T>()[n] = column < shard.valid ? -static_cast<T>(shard.first_column + column)
                                            : -std::numeric_limits<T>::infinity();
}

}  // namespace

void CpuBackend::run(const MaximumPlaceOperands& o) {
  const LogitShard shard = o.checked();
  in_ranges(threads_, o.logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    for (std::int64_t n = first; n < last; ++n)
      if (o.logits.dtype == DType::f32) find_place<float>(o, shard, n);
      else find_place<double>(o, shard, n);
  });
}

void CpuBackend::run(const RowMaximumOperands& o) {
  const LogitShard shard = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).row_maximum[dtype_index(o.logits.dtype)];
  in_ranges(threads_, o.logits.rows(), row_grain(shard.cols),
            [&](auto first, auto last) { kernel(o.logits.data, shard, o.maximum.data, first, last); });
}

void CpuBackend::run(const SoftmaxSumsOperands& o) {
  const LogitShard shard = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).softmax_sums[dtype_index(o.logits.dtype)];
  in_ranges(threads_, o.logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    kernel(o.logits.data, shard, o.targets.as<std::int32_t>(), o.maximum.data, o.sums.data, o.of_target.data,
           o.total.data, first, last);
  });
}

void CpuBackend::run(const CrossEntropyOperands& o) {
  const TargetShares shares = o.checked();
  if (o.losses.dtype == DType::f32) losses_of<float>(o, shares);
  else losses_of<double>(o, shares);
}

void CpuBackend::run(const CrossEntropyBackwardOperands& o) {
  const LogitShard shard = o.checked();
  const TargetShares shares = o.shares();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).backward[dtype_index(o.dlogits.dtype)];
  in_ranges(threads_, o.logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    kernel(o.logits.data, shard, o.targets.as<std::int32_t>(), o.maximum.data, o.sums.data, o.factor,
           shares.of_each, shares.of_target, o.dlogits.data, first, last);
  });
}

}  // namespace mindpipe
