#pragma once
#include <cublas_v2.h>
#include <cudnn.h>

#include "core/check.h"

namespace mindpipe::cuda {

/// Throws a sentence unless a call of cuBLASLt or cuDNN went well; `question` is the operation with its shapes.
inline void require(cublasStatus_t result, const char* call, const std::string& question) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  fail(memory ? Exit::out_of_memory : Exit::internal, "cublasLt: {} answered {} for {}; {}", call, cublasGetStatusName(result), question,
       memory ? "take a smaller train.micro_batch, or see with nvidia-smi who else uses this GPU"
              : "run once more with CUBLASLT_LOG_LEVEL=5, which says what it was asked, and report it");
}
inline void require(cudnnStatus_t result, const char* call, const std::string& question) {
  if (result == CUDNN_STATUS_SUCCESS) return;
  fail(Exit::internal, "cudnn: {} answered {} for {}; run once more with CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=stderr, which says why, and report it", call,
       cudnnGetErrorString(result), question);
}

}  // namespace mindpipe::cuda
