#include "cpu/simd/update_kernels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "cpu/simd/elementwise_kernels.h"
#include "operations/batch_norm.h"
#include "operations/updates.h"

namespace mindpipe {

void CpuBackend::run(const SumSquaresOperands& o) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).sum_squares[dtype_index(o.x.dtype)];
  in_ranges(threads_, o.chunks(), 2, [&](auto first, auto last) {
    kernel(o.x.data, o.x.count(), statistics_chunk, o.sums.as<double>(), first, last);
  });
}

void CpuBackend::run(const SumSquaresOfSpansOperands& o) { run_in_turn(o); }

std::int64_t CpuBackend::count_not_finite(const Tensor& x) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).count_not_finite[dtype_index(x.dtype)];
  std::atomic<std::int64_t> found{0};
  in_ranges(threads_, x.count(), element_grain,
            [&](auto first, auto last) { found += kernel(x.data, first, last); });
  progress();
  return found;
}

std::uint64_t CpuBackend::hash(const Tensor& x) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).hash[dtype_index(x.dtype)];
  std::atomic<std::uint64_t> sum{0};
  in_ranges(threads_, x.count(), element_grain,
            [&](auto first, auto last) { sum += kernel(x.data, first, last); });
  progress();
  return sum;
}

void CpuBackend::run(const SumSpansOperands& o) {
  const auto add = [&]<class T>(const T* from) {
    for (std::int64_t s = 0; s < o.totals.count(); ++s) {
      double total = 0;
      for (std::int32_t i = o.spans.as<std::int32_t>()[2 * s]; i < o.spans.as<std::int32_t>()[2 * s + 1]; ++i)
        total += from[i];
      o.totals.as<double>()[s] = total;
    }
  };
  if (o.x.dtype == DType::f32) add(o.x.as<float>());
  else add(o.x.as<double>());
}

void CpuBackend::run(const ClipAndScaleOperands& o) {
  clip_and_scale_step(o.rule, o.sums.as<double>()[0], o.sums.as<double>()[1], o.decision.as<double>());
}

void CpuBackend::run(const AdamWOperands& o) {
  const int index = o.checked();
  const double* decided = o.decision.as<double>();
  if (decided[Decision::skipped] != 0) return;
  const AdamWStep step = o.step();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).adamw[index];
  in_ranges(threads_, o.master.count(), element_grain, [&](auto first, auto last) {
    kernel(step, decided, o.gradient.data, o.master.data, o.m.data, o.v.data, o.value.data, first, last);
  });
}

void CpuBackend::run(const AdamWOfSpansOperands& o) { run_in_turn(o); }

void CpuBackend::run(const SgdOperands& o) {
  const int index = o.checked();
  const double* decided = o.decision.as<double>();
  if (decided[Decision::skipped] != 0) return;
  const SgdStep step = o.step();
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).sgd[index];
  in_ranges(threads_, o.master.count(), element_grain, [&](auto first, auto last) {
    kernel(step, decided, o.gradient.data, o.master.data, o.velocity.data, o.value.data, first, last);
  });
}

void CpuBackend::run(const SgdOfSpansOperands& o) { run_in_turn(o); }

void CpuBackend::run(const RunningMeanOperands& o) {
  if (o.decision.as<double>()[Decision::skipped] != 0) return;
  const auto move = [&]<class T>(T* master) {
    const T share = static_cast<T>(o.share), factor = static_cast<T>(o.factor), *sum = o.sum.as<T>();
    for (std::int64_t i = 0; i < o.master.count(); ++i) master[i] += share * (factor * sum[i] - master[i]);
  };
  if (o.master.dtype == DType::f64) move(o.master.as<double>());
  else move(o.master.as<float>());
  if (o.value) run(ConvertOperands{o.master, o.value});
}

}  // namespace mindpipe
