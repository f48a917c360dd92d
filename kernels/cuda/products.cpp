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

cuda::Finish finish_of(const Tensor& sums, const Tensor& result, Activation activation, const Tensor& bias,
                       const Tensor& before) {
  return {sums.data,
          result.data,
          dtype_index(result.dtype),
          activation,
          bias.data,
          dtype_index(bias.dtype),
          before.data,
          dtype_index(before.dtype),
          result.count(),
          result.cols()};
}

/// Sums in f32 (f64 beside f64), then another pass over them: where they are results already, in place, else
/// by runs of rows that fit into `scratch`. product(first, rows, sums); finish(first, rows, sums).
template <class Product, class Finish>
void in_two_passes(const ProductCall& call, const Tensor& result, void* scratch, const Product& product,
                   const Finish& finish) {
  const std::int64_t n = call.n, run = cuda::rows_at_once(call, ProductLibrary::sums_bytes);
  for (std::int64_t first = 0; first < n; first += run) {
    const std::int64_t rows = std::min(run, n - first);
    const Tensor sums =
        result.dtype == DType::bf16 ? Tensor{scratch, {rows, result.cols()}, DType::f32} : result;
    product(first, rows, sums);
    finish(first, rows, sums);
  }
}

}  // namespace

void CudaBackend::linear(const LinearOperands& o) {
  const ProductCall call = o.checked();
  if (call.n == 0) return done("linear");
  auto* memory = static_cast<std::byte*>(workspace(gpu_workspace_bytes, "linear"));
  if (const auto fused = cuda::fused_key(call); fused && products_.has(*fused)) {
    products_.run(*fused, {o.w.data, o.x.data, o.y.data, o.bias.data, o.before.data}, memory, stream());
  } else {
    in_two_passes(
        call, o.y, memory + ProductLibrary::workspace_bytes,
        [&](std::int64_t first, std::int64_t rows, const Tensor& sums) {
          products_.run(cuda::sums_key(call, rows), {o.w.data, rows_of(o.x, first, rows).data, sums.data},
                        memory, stream());
        },
        [&](std::int64_t first, std::int64_t rows, const Tensor& sums) {
          cuda::finish_forward(finish_of(sums, rows_of(o.y, first, rows), o.activation, o.bias,
                                         rows_of(o.before, first, rows)),
                               stream());
        });
  }
  done("linear");
}

void CudaBackend::linear_backward_input(const LinearBackwardInputOperands& o) {
  const ProductCall call = o.checked();
  if (call.n == 0) return done("linear_backward_input");
  auto* memory = static_cast<std::byte*>(workspace(gpu_workspace_bytes, "linear_backward_input"));
  if (const auto fused = cuda::fused_key(call); fused && products_.has(*fused)) {
    products_.run(*fused, {o.w.data, o.dy.data, o.dx.data, nullptr, o.before.data}, memory, stream());
  } else {
    in_two_passes(
        call, o.dx, memory + ProductLibrary::workspace_bytes,
        [&](std::int64_t first, std::int64_t rows, const Tensor& sums) {
          products_.run(cuda::sums_key(call, rows), {o.w.data, rows_of(o.dy, first, rows).data, sums.data},
                        memory, stream());
        },
        [&](std::int64_t first, std::int64_t rows, const Tensor& sums) {
          cuda::finish_backward(
              finish_of(sums, rows_of(o.dx, first, rows), o.activation, {}, rows_of(o.before, first, rows)),
              stream());
        });
  }
  done("linear_backward_input");
}

void CudaBackend::linear_backward_weight(const LinearBackwardWeightOperands& o) {
  const ProductCall call = o.checked();
  if (call.n == 0) return done("linear_backward_weight");
  products_.run(*cuda::fused_key(call), {o.x.data, o.dy.data, o.dw.data},
                workspace(gpu_workspace_bytes, "linear_backward_weight"), stream());
  done("linear_backward_weight");
}

}  // namespace mindpipe
