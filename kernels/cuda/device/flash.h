#pragma once
#include <cuda_runtime.h>

#include "operations/attention_views.h"

/// Attention by kernels of our own: any length, mask and dropout, f32 and bf16, heads up to 256 wide. No
/// scores leave the multiprocessor, nothing is added by atomics. `bf16`: the operands, else f32.
namespace mindpipe::cuda {

cudaError_t flash_forward(const AttentionCall& call, bool bf16, cudaStream_t stream);
cudaError_t flash_backward(const AttentionCall& call, bool bf16, cudaStream_t stream);

}  // namespace mindpipe::cuda
