#pragma once
#include <cuda_runtime.h>

#include "operations/attention_views.h"

/// Attention in f64 as one would write it down, a thread for each row: for gradient checks, of any shape.
namespace mindpipe::cuda {

void attention_f64(const AttentionCall& call, cudaStream_t stream);
void attention_backward_f64(const AttentionCall& call, cudaStream_t stream);

}  // namespace mindpipe::cuda
