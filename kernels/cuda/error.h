#pragma once
#include <cuda_runtime.h>

#include "core/check.h"

namespace mindpipe::cuda {

/// Throws a sentence unless a call of the CUDA runtime went well: the call, the answer, what to do about it.
void require(cudaError_t result, const char* call);

}  // namespace mindpipe::cuda

/// MP_CUDA(cudaEventRecord(event, stream));
#define MP_CUDA(call) ::mindpipe::cuda::require((call), #call)
