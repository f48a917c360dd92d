#include "cuda/multiply.h"

#include "cuda/device/finish.h"

namespace mindpipe::cuda {
namespace {

/// Rows [first, first + count) of a matrix, or none of none.
Tensor rows_of(const Tensor& t, std::int64_t first, std::int64_t count) {
  return t ? t.row_range(first, count) : t;
}

}  // namespace

void multiply(ProductLibrary& library, const ProductCall& call, int processors, const Tensor& w,
              const Tensor& in, const Tensor& result, const Tensor& bias, const Tensor& before,
              void* workspace, cudaStream_t stream) {
  ProductCall asked = call;
  if (call.activation == Activation::none) asked.before.reset();  // nothing goes into an activation
  const Tensor kept = asked.before ? before : Tensor{};
  if (const auto fused = fused_key(asked, processors);
      fused &&
      library.try_run(*fused, {w.data, in.data, result.data, bias.data, kept.data}, workspace, stream))
    return;
  const std::int64_t run = rows_at_once(asked, ProductLibrary::sums_bytes);
  for (std::int64_t first = 0; first < asked.n; first += run) {
    const std::int64_t rows = std::min(run, asked.n - first);
    const Tensor of_run = rows_of(result, first, rows), before_run = rows_of(kept, first, rows);
    void* sums = result.dtype == DType::bf16
                     ? static_cast<std::byte*>(workspace) + ProductLibrary::workspace_bytes
                     : of_run.data;
    library.run(sums_key(asked, rows, processors), {w.data, rows_of(in, first, rows).data, sums}, workspace,
                stream);
    const Finish finish{.sums = sums,
                        .result = of_run.data,
                        .result_type = dtype_index(of_run.dtype),
                        .activation = asked.activation,
                        .bias = bias.data,
                        .bias_type = dtype_index(bias.dtype),
                        .before = before_run.data,
                        .before_type = dtype_index(before_run.dtype),
                        .count = of_run.count(),
                        .cols = of_run.cols()};
    if (asked.kind == ProductKind::forward) finish_forward(finish, stream);
    else finish_backward(finish, stream);
  }
}

void multiply_gradient(ProductLibrary& library, const ProductCall& call, int processors, const Tensor& x,
                       const Tensor& dy, const Tensor& dw, void* workspace, cudaStream_t stream) {
  library.run(*fused_key(call, processors), {x.data, dy.data, dw.data}, workspace, stream);
}

}  // namespace mindpipe::cuda
