#include "cpu/simd/update_kernels.h"

#include "cpu/cpu_backend.h"
#include "cpu/parallel.h"
#include "update_step.h"

namespace mindpipe {

void CpuBackend::sum_squares(const Tensor& x, const Tensor& sums) {
  const std::int64_t chunks = (x.count() + statistics_chunk - 1) / statistics_chunk;
  require(sums, chunks, DType::f64, "sum_squares", "sums");
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).sum_squares[slot(x.dtype)];
  in_ranges(threads_, chunks, 2, [&](auto first, auto last) {
    kernel(x.data, x.count(), statistics_chunk, sums.as<double>(), first, last);
  });
  progress();
}

std::int64_t CpuBackend::count_not_finite(const Tensor& x) {
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).count_not_finite[slot(x.dtype)];
  std::atomic<std::int64_t> found{0};
  in_ranges(threads_, x.count(), element_grain,
            [&](auto first, auto last) { found += kernel(x.data, first, last); });
  progress();
  return found;
}

void CpuBackend::sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) {
  require_spans(x, spans, totals);
  const auto add = [&]<class T>(const T* from) {
    for (std::int64_t s = 0; s < totals.count(); ++s) {
      double total = 0;
      for (std::int32_t i = spans.as<std::int32_t>()[2 * s]; i < spans.as<std::int32_t>()[2 * s + 1]; ++i)
        total += from[i];
      totals.as<double>()[s] = total;
    }
  };
  if (x.dtype == DType::f32) add(x.as<float>());
  else add(x.as<double>());
  progress();
}

void CpuBackend::decide(const StepRule& rule, const Tensor& sums, const Tensor& decision) {
  require_decided(sums, decision);
  decide_step(rule, sums.as<double>()[0], sums.as<double>()[1], decision.as<double>());
  progress();
}

void CpuBackend::adamw(const AdamW& rule, const Tensor& decision, const Tensor& gradient,
                       const Tensor& master, const Tensor& m, const Tensor& v, const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "adamw");
  require(m, master.count(), master.dtype, "adamw", "m");
  require(v, master.count(), master.dtype, "adamw", "v");
  require_decision(decision, "adamw");
  const double* decided = decision.as<double>();
  if (decided[Decision::skipped] != 0) return progress();
  const AdamWStep step = step_of(rule);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).adamw[kind];
  in_ranges(threads_, master.count(), element_grain, [&](auto first, auto last) {
    kernel(step, decided, gradient.data, master.data, m.data, v.data, value.data, first, last);
  });
  progress();
}

void CpuBackend::sgd(const Sgd& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
                     const Tensor& velocity, const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "sgd");
  MP_CHECK(velocity || rule.momentum == 0, "sgd: momentum {} without a velocity", rule.momentum);
  if (velocity) require(velocity, master.count(), master.dtype, "sgd", "velocity");
  require_decision(decision, "sgd");
  const double* decided = decision.as<double>();
  if (decided[Decision::skipped] != 0) return progress();
  const SgdStep step = step_of(rule);
  const auto kernel = MINDPIPE_PICK_KERNELS(isa_, update_kernels).sgd[kind];
  in_ranges(threads_, master.count(), element_grain, [&](auto first, auto last) {
    kernel(step, decided, gradient.data, master.data, velocity.data, value.data, first, last);
  });
  progress();
}

}  // namespace mindpipe
