#include "cuda/blas_lt.h"

#include "core/check.h"
#include "open_library.h"

namespace mindpipe::cuda {
namespace {

/// Fills in a pointer to a function of cuBLASLt.
template <class Function>
void find(Function& function, const char* name) {
  static const std::string library = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  function = reinterpret_cast<Function>(symbol_of(library, name, "products on a GPU"));
}

}  // namespace

BlasLt::BlasLt() {
  find(create, "cublasLtCreate");
  find(destroy, "cublasLtDestroy");
  find(version, "cublasLtGetVersion");
  find(status_name, "cublasLtGetStatusName");
  find(multiply, "cublasLtMatmul");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(check, "cublasLtMatmulAlgoCheck");
  find(initialize_description, "cublasLtMatmulDescInit_internal");
  find(set_description, "cublasLtMatmulDescSetAttribute");
  find(initialize_layout, "cublasLtMatrixLayoutInit_internal");
  find(initialize_preference, "cublasLtMatmulPreferenceInit_internal");
  find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
}

void BlasLt::refuse(cublasStatus_t result, const char* call, const std::string& question) const {
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  fail(memory ? Exit::out_of_memory : Exit::internal, "cublasLt: {} answered {} for {}; {}", call,
       status_name(result), question,
       memory ? "take a smaller train.micro_batch, or see with nvidia-smi who else uses this GPU"
              : "run once more with CUBLASLT_LOG_LEVEL=5, which says what it was asked, and report it");
}

}  // namespace mindpipe::cuda
