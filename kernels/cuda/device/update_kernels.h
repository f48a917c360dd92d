#pragma once
#include <cuda_runtime.h>

#include "operations/calls.h"
#include "operations/decision.h"

/// Starts kernels on operands that have been checked. `type` is the dtype: f64, f32, bf16; of updates, that
/// of the value, which stands beside f32 masters (f64 beside f64) and may be null.
namespace mindpipe::cuda {

void sum_squares(int type, const void* x, std::int64_t count, std::int64_t chunk, double* sums,
                 cudaStream_t stream);
/// found += how many elements are NaN or infinite
void count_not_finite(int type, const void* x, std::int64_t count, unsigned long long* found,
                      cudaStream_t stream);
/// totals[s] = the sum of x over span s = begin, end, in order. x is f64 or f32.
void sum_spans(int type, const void* x, const std::int32_t* spans, double* totals, std::int64_t count,
               cudaStream_t stream);
/// sums: the loss and the gradient's square.
void clip_and_scale(const StepRule& rule, const double* sums, double* decision, cudaStream_t stream);
void adamw(int type, const AdamWStep& step, const double* decision, const void* gradient, void* master,
           void* m, void* v, void* value, std::int64_t count, cudaStream_t stream);
void sgd(int type, const SgdStep& step, const double* decision, const void* gradient, void* master,
         void* velocity, void* value, std::int64_t count, cudaStream_t stream);

}  // namespace mindpipe::cuda
