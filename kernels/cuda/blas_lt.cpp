#include "cuda/blas_lt.h"

#include <dlfcn.h>

#include "core/check.h"

namespace mindpipe::cuda {
namespace {

/// Fills in a pointer to a function of cuBLASLt.
template <class Function>
void find(Function& function, const char* name) {
  static const std::string library = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  function = reinterpret_cast<Function>(symbol_of(library, name, "products on a GPU"));
}

}  // namespace

void* symbol_of(const std::string& library, const char* name, const char* needed_for) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // opened once, whoever asks again gets the same
  if (opened == nullptr) {
    const char* why = dlerror();
    fail(Exit::bad_configuration,
         "cuda: {} cannot be opened ({}), which {} need; load the module of CUDA, or add its folder to LD_LIBRARY_PATH", library,
         why == nullptr ? "no reason given" : why, needed_for);
  }
  void* found = dlsym(opened, name);
  MP_REQUIRE(found != nullptr, Exit::bad_configuration, "cuda: {} has no {}; use the version that this program was built with", library,
             name);
  return found;
}

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
  fail(memory ? Exit::out_of_memory : Exit::internal, "cublasLt: {} answered {} for {}; {}", call, status_name(result), question,
       memory ? "take a smaller train.micro_batch, or see with nvidia-smi who else uses this GPU"
              : "run once more with CUBLASLT_LOG_LEVEL=5, which says what it was asked, and report it");
}

}  // namespace mindpipe::cuda
