#include "operations/products.h"
#include "cuda/cuda_backend.h"
#include "cuda/device/finish.h"
#include "cuda/product_library.h"

namespace mindpipe {
namespace {

using cuda::ProductLibrary;
static_assert(gpu_workspace_bytes >= ProductLibrary::workspace_bytes + ProductLibrary::sums_bytes);

/// Rows [first, first + count) of a matrix, or none of none.
Tensor rows_of(const Tensor& t, std::int64_t first, std::int64_t count) {
  return t ? t.row_range(first, count) : t;
}

}  // namespace

/// Multiplies in one call of the library where it can be asked for all; else sums in f32 (f64 beside f64),
/// then another pass over them: in place where they are results already, else by runs of rows that fit there.
void CudaBackend::multiply(const ProductCall& call, const Tensor& w, const Tensor& in, const Tensor& result,
                           const Tensor& bias, const Tensor& before) {
  if (call.n == 0) return;
  const bool forward = call.kind == ProductCall::Kind::forward;
  auto* memory =
      static_cast<std::byte*>(workspace(gpu_workspace_bytes, forward ? "linear" : "linear_backward_input"));
  if (const auto fused = cuda::fused_key(call, processors_); fused && products_.has(*fused))
    return products_.run(*fused, {w.data, in.data, result.data, bias.data, before.data}, memory, stream());
  const std::int64_t run = cuda::rows_at_once(call, ProductLibrary::sums_bytes);
  for (std::int64_t first = 0; first < call.n; first += run) {
    const std::int64_t rows = std::min(run, call.n - first);
    const Tensor of_run = rows_of(result, first, rows), before_run = rows_of(before, first, rows);
    void* sums = result.dtype == DType::bf16 ? memory + ProductLibrary::workspace_bytes : result.data;
    products_.run(cuda::sums_key(call, rows, processors_), {w.data, rows_of(in, first, rows).data, sums},
                  memory, stream());
    const cuda::Finish finish{.sums = sums,
                              .result = of_run.data,
                              .result_type = dtype_index(of_run.dtype),
                              .activation = call.activation,
                              .bias = bias.data,
                              .bias_type = dtype_index(bias.dtype),
                              .before = before_run.data,
                              .before_type = dtype_index(before_run.dtype),
                              .count = of_run.count(),
                              .cols = of_run.cols()};
    if (forward) cuda::finish_forward(finish, stream());
    else cuda::finish_backward(finish, stream());
  }
}

void CudaBackend::run(const LinearOperands& o) { multiply(o.checked(), o.w, o.x, o.y, o.bias, o.before); }

void CudaBackend::run(const LinearBackwardInputOperands& o) {
  multiply(o.checked(), o.w, o.dy, o.dx, {}, o.before);
}

void CudaBackend::run(const LinearBackwardWeightOperands& o) {
  const ProductCall call = o.checked();
  if (call.n == 0) return;
  products_.run(*cuda::fused_key(call, processors_), {o.x.data, o.dy.data, o.dw.data},
                workspace(gpu_workspace_bytes, "linear_backward_weight"), stream());
}

}  // namespace mindpipe
