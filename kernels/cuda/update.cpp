#include "cuda/device/update_kernels.h"
#include "cuda/error.h"
#include "cuda/gpu_operations.h"
#include "operations/updates.h"

namespace mindpipe {

void GpuOperations::run(const SumSquaresOperands& o) {
  cuda::sum_squares(dtype_index(o.x.dtype), o.x.data, o.x.count(), statistics_chunk, o.sums.as<double>(),
                    stream());
}

std::int64_t GpuOperations::count_not_finite(const Tensor& x) {
  auto* found = static_cast<unsigned long long*>(workspace(sizeof(unsigned long long), "count_not_finite"));
  MP_CUDA(cudaMemsetAsync(found, 0, sizeof *found, stream()));
  cuda::count_not_finite(dtype_index(x.dtype), x.data, x.count(), found, stream());
  unsigned long long answer = 0;
  staging_.download(found, &answer, sizeof answer, stream());
  done("count_not_finite");
  return static_cast<std::int64_t>(answer);
}

void GpuOperations::run(const SumSpansOperands& o) {
  cuda::sum_spans(dtype_index(o.x.dtype), o.x.data, o.spans.as<std::int32_t>(), o.totals.as<double>(),
                  o.totals.count(), stream());
}

void GpuOperations::run(const ClipAndScaleOperands& o) {
  cuda::clip_and_scale(o.rule, o.sums.as<double>(), o.decision.as<double>(), stream());
}

void GpuOperations::run(const AdamWOperands& o) {
  const int index = o.checked();
  cuda::adamw(index, o.step(), o.decision.as<double>(), o.gradient.data, o.master.data, o.m.data, o.v.data,
              o.value.data, o.master.count(), stream());
}

void GpuOperations::run(const SgdOperands& o) {
  const int index = o.checked();
  cuda::sgd(index, o.step(), o.decision.as<double>(), o.gradient.data, o.master.data, o.velocity.data,
            o.value.data, o.master.count(), stream());
}

}  // namespace mindpipe
