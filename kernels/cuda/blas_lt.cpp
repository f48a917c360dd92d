#include "cuda/blas_lt.h"

#include "core/check.h"
#include "open_library.h"

namespace mindpipe::cuda {

void* LtFunction::address() const {
  return symbol_of(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR), name, "products on a GPU");
}

BlasLt::BlasLt() {
  if (const cublasStatus_t answer = create(&handle); answer != CUBLAS_STATUS_SUCCESS)
    refuse(answer, "cublasLtCreate", "a new handle");
}

void BlasLt::refuse(cublasStatus_t result, const char* call, const std::string& question) const {
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  fail(memory ? Exit::out_of_memory : Exit::internal, "cublasLt: {} answered {} for {}; {}", call,
       status_name(result), question,
       memory ? "take a smaller train.micro_batch, or see with nvidia-smi who else uses this GPU"
              : "run once more with CUBLASLT_LOG_LEVEL=5, which says what it was asked, and report it");
}

}  // namespace mindpipe::cuda
