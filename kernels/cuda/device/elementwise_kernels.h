#pragma once
#include <cuda_runtime.h>

#include "operations/calls.h"

/// Starts kernels on operands that have been checked. `type` is the dtype: f64, f32, bf16.
namespace mindpipe::cuda {

void add(int type, const void* a, const void* b, void* sum, std::int64_t count, cudaStream_t stream);
void maximum(int type, const void* a, const void* b, void* largest, std::int64_t count, cudaStream_t stream);
void accumulate(int type, const void* part, void* total, std::int64_t count, cudaStream_t stream);
void convert(int from, int to, const void* x, void* y, std::int64_t count, cudaStream_t stream);
/// Elements of `size` bytes (1, 2, 4 or 8), each with these bits.
void fill(int size, std::uint64_t bits, void* x, std::int64_t count, cudaStream_t stream);
void swiglu(int type, const void* gate_up, void* y, std::int64_t rows, std::int64_t cols,
            cudaStream_t stream);
void swiglu_backward(int type, const void* dy, const void* gate_up, void* dgate_up, std::int64_t rows,
                     std::int64_t cols, cudaStream_t stream);
void residual(int type, const void* x, const void* branch, const void* bias, const MaskRows& mask, void* y,
              std::int64_t rows, cudaStream_t stream);
void dropout(int type, const void* x, const MaskRows& mask, void* y, std::int64_t rows, cudaStream_t stream);

}  // namespace mindpipe::cuda
