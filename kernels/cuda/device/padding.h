#pragma once
#include <cuda_runtime.h>

#include "operations/attention_views.h"

/// What cuDNN leaves undefined where keys are padding, made what operations/attention.h says. bf16 operands.
namespace mindpipe::cuda {

/// lengths[0 .. samples) = length.
void fill_lengths(std::int32_t* lengths, std::int64_t samples, std::int32_t length, cudaStream_t stream);
/// Samples without a key: out and log_sum become zero.
void clear_empty_rows(const AttentionCall& call, cudaStream_t stream);
/// Samples without a key: dq becomes zero; so do dk and dv of keys at or beyond a sample's length.
void clear_padded_gradients(const AttentionCall& call, cudaStream_t stream);

}  // namespace mindpipe::cuda
