#include "cpu/simd/classifier_kernels.h"

#include "core/portable_math.h"
#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "operations/classifier.h"

namespace mindpipe {
namespace {

template <class T>
void losses_of(const CrossEntropyOperands& o, const TargetShares& shares) {
  for (std::int64_t n = 0; n < o.targets.count(); ++n) {
    const double loss = static_cast<double>(o.maximum.as<T>()[n]) +
                        portable::log(static_cast<double>(o.sums.as<T>()[n])) -
                        shares.of_target * static_cast<double>(o.of_target.as<T>()[n]) -
                        shares.of_each * static_cast<double>(o.total.as<T>()[n]);
    o.losses.as<T>()[n] = o.targets.as<std::int32_t>()[n] < 0 ? T(0) : static_cast<T>(loss);
  }
}

template <class T>
void add_hits(const CountHitsOperands& o, const TargetList& list) {
  const auto* target = o.targets.as<std::int32_t>();
  const T* rank = o.ranks.as<T>();
  double* const hits = o.hits.as<double>();
  for (std::int64_t s = 0; s < list.samples; ++s) {
    std::int64_t counted = 0, right = 0, within_five = 0;
    for (std::int64_t i = 0; i < list.each; ++i, ++target, ++rank) {
      if (*target < 0) continue;
      ++counted;
      right += *rank < 1;
      within_five += *rank < 5;
    }
    hits[Hits::right] += static_cast<double>(right);
    hits[Hits::within_five] += static_cast<double>(within_five);
    hits[Hits::exact] += counted > 0 && right == counted ? 1 : 0;
    hits[Hits::samples] += counted > 0 ? 1 : 0;
  }
}

}  // namespace

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

void CpuBackend::run(const TargetRankOperands& o) {
  const LogitShard shard = o.checked();
  const auto kernel =
      MINDPIPE_PICK_KERNELS(isa_, classifier_kernels).target_rank[dtype_index(o.logits.dtype)];
  in_ranges(threads_, o.logits.rows(), row_grain(shard.cols), [&](auto first, auto last) {
    kernel(o.logits.data, shard, o.targets.as<std::int32_t>(), o.of_target.data, o.ranks.data, first, last);
  });
}

void CpuBackend::run(const CountHitsOperands& o) {
  const TargetList list = o.checked();
  if (o.ranks.dtype == DType::f32) add_hits<float>(o, list);
  else add_hits<double>(o, list);
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

void CpuBackend::run(const SoftmaxCrossEntropyOperands& o) { run_in_turn(o); }

}  // namespace mindpipe
