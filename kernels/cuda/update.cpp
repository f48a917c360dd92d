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

void GpuOperations::adamw(const AdamW& rule, const UpdateScale& scale, const Tensor& gradient, const Tensor& master, const Tensor& m,
                          const Tensor& v, const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "adamw");
  require(m, master.count(), master.dtype, "adamw", "m");
  require(v, master.count(), master.dtype, "adamw", "v");
  cuda::adamw(kind, step_of(rule, scale), gradient.data, master.data, m.data, v.data, value.data, master.count(), stream());
  done("adamw");
}

void GpuOperations::sgd(const Sgd& rule, const UpdateScale& scale, const Tensor& gradient, const Tensor& master, const Tensor& velocity,
                        const Tensor& value) {
  const int kind = update_slot(gradient, master, value, "sgd");
  MP_CHECK(velocity || rule.momentum == 0, "sgd: momentum {} without a velocity", rule.momentum);
  if (velocity) require(velocity, master.count(), master.dtype, "sgd", "velocity");
  cuda::sgd(kind, step_of(rule, scale), gradient.data, master.data, velocity.data, value.data, master.count(), stream());
  done("sgd");
}

}  // namespace mindpipe
