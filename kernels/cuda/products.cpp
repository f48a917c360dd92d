#include "operations/products.h"
#include "cuda/cuda_backend.h"
#include "cuda/multiply.h"

namespace mindpipe {

static_assert(gpu_workspace_bytes >= cuda::multiply_bytes);

void CudaBackend::run(const LinearOperands& o) {
  if (const ProductCall call = o.checked(); call.n > 0)
    cuda::multiply(products_, call, processors_, o.w, o.x, o.y, o.bias, o.before,
                   workspace(gpu_workspace_bytes, "linear"), stream());
}

void CudaBackend::run(const LinearBackwardInputOperands& o) {
  if (const ProductCall call = o.checked(); call.n > 0)
    cuda::multiply(products_, call, processors_, o.w, o.dy, o.dx, {}, o.before,
                   workspace(gpu_workspace_bytes, "linear_backward_input"), stream());
}

void CudaBackend::run(const LinearBackwardWeightOperands& o) {
  if (const ProductCall call = o.checked(); call.n > 0)
    cuda::multiply_gradient(products_, call, processors_, o.x, o.dy, o.dw,
                            workspace(gpu_workspace_bytes, "linear_backward_weight"), stream());
  else if (o.is_first) GpuOperations::run(FillOperands{o.dw, 0});
}

}  // namespace mindpipe
