#include "cuda/device/update_kernels.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "update_step.h"

namespace mindpipe {

void GpuOperations::sum_squares(const Tensor& x, const Tensor& sums) {
  require(sums, (x.count() + statistics_chunk - 1) / statistics_chunk, DType::f64, "sum_squares", "sums");
  cuda::sum_squares(slot(x.dtype), x.data, x.count(), statistics_chunk, sums.as<double>(), stream());
  done("sum_squares");
}

std::int64_t GpuOperations::count_not_finite(const Tensor& x) {
  auto* found = static_cast<unsigned long long*>(workspace(sizeof(unsigned long long), "count_not_finite"));
  MP_CUDA(cudaMemsetAsync(found, 0, sizeof *found, stream()));
  cuda::count_not_finite(slot(x.dtype), x.data, x.count(), found, stream());
  unsigned long long answer = 0;
  staging_.download(found, &answer, sizeof answer, stream());
  done("count_not_finite");
  return static_cast<std::int64_t>(answer);
}

void GpuOperations::sum_spans(const Tensor& x, const Tensor& spans, const Tensor& totals) {
  require_spans(x, spans, totals);
  cuda::sum_spans(slot(x.dtype), x.data, spans.as<std::int32_t>(), totals.as<double>(), totals.count(),
                  stream());
  done("sum_spans");
}

void GpuOperations::decide(const StepRule& rule, const Tensor& sums, const Tensor& decision) {
  require_decided(sums, decision);
  cuda::decide(rule, sums.as<double>(), decision.as<double>(), stream());
  done("decide");
}

void GpuOperations::adamw(const AdamW& rule, const Tensor& decision, const Tensor& gradient,
                          const Tensor& master, const Tensor& m, const Tensor& v, const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "adamw");
  require(m, master.count(), master.dtype, "adamw", "m");
  require(v, master.count(), master.dtype, "adamw", "v");
  require_decision(decision, "adamw");
  cuda::adamw(kind, step_of(rule), decision.as<double>(), gradient.data, master.data, m.data, v.data,
              value.data, master.count(), stream());
  done("adamw");
}

void GpuOperations::sgd(const Sgd& rule, const Tensor& decision, const Tensor& gradient, const Tensor& master,
                        const Tensor& velocity, const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "sgd");
  MP_CHECK(velocity || rule.momentum == 0, "sgd: momentum {} without a velocity", rule.momentum);
  if (velocity) require(velocity, master.count(), master.dtype, "sgd", "velocity");
  require_decision(decision, "sgd");
  cuda::sgd(kind, step_of(rule), decision.as<double>(), gradient.data, master.data, velocity.data, value.data,
            master.count(), stream());
  done("sgd");
}

}  // namespace mindpipe
