#pragma once
#include "cuda/product_library.h"
#include "operations/products.h"

namespace mindpipe::cuda {

/// Bytes of workspace that `multiply` takes.
inline constexpr std::size_t multiply_bytes = ProductLibrary::workspace_bytes + ProductLibrary::sums_bytes;

/// Computes a forward product or a gradient of its input: in one call of the library where it can be asked
/// for all, and does it; else sums in f32 (f64 beside f64), then another pass over them: in place where they
/// are results already, else by runs of rows that fit into the workspace. `in` is what the weights are
/// multiplied with, tensors are none where the call has none; `processors`: ProductKey::processors.
void multiply(ProductLibrary& library, const ProductCall& call, int processors, const Tensor& w,
              const Tensor& in, const Tensor& result, const Tensor& bias, const Tensor& before,
              void* workspace, cudaStream_t stream);
/// Adds a gradient of the weights, which are sums of f32 and have no other pass.
void multiply_gradient(ProductLibrary& library, const ProductCall& call, int processors, const Tensor& x,
                       const Tensor& dy, const Tensor& dw, void* workspace, cudaStream_t stream);

}  // namespace mindpipe::cuda
