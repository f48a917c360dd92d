#pragma once
#include <cuda_runtime.h>

#include "calls.h"

/// Starts kernels on operands that have been checked. `slot` is the dtype: f64, f32, bf16; of updates, that of the value, which stands
/// beside f32 masters (f64 beside f64) and may be null.
namespace mindpipe::cuda {

void sum_squares(int slot, const void* x, std::int64_t count, std::int64_t chunk, double* sums, cudaStream_t stream);
/// found += how many elements are NaN or infinite
void count_not_finite(int slot, const void* x, std::int64_t count, unsigned long long* found, cudaStream_t stream);
void adamw(int slot, const AdamWStep& step, const void* gradient, void* master, void* m, void* v, void* value, std::int64_t count,
           cudaStream_t stream);
void sgd(int slot, const SgdStep& step, const void* gradient, void* master, void* velocity, void* value, std::int64_t count,
         cudaStream_t stream);

}  // namespace mindpipe::cuda
