#pragma once
#include <cublasLt.h>

#include <string>

namespace mindpipe::cuda {

/// The address of a function of cuBLASLt, as whatever is asked for.
struct LtFunction {
  const char* name;
  void* address() const;
  template <class Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address());
  }
};

/// The functions of cuBLASLt, found in the library when the first GPU backend is made: a program that
/// computes on processors neither needs nor opens it.
struct BlasLt {
#define MINDPIPE_LT(member, function) decltype(&function) member = LtFunction{#function};
  MINDPIPE_LT(create, cublasLtCreate)
  MINDPIPE_LT(destroy, cublasLtDestroy)
  MINDPIPE_LT(version, cublasLtGetVersion)
  MINDPIPE_LT(status_name, cublasLtGetStatusName)
  MINDPIPE_LT(multiply, cublasLtMatmul)
  MINDPIPE_LT(heuristic, cublasLtMatmulAlgoGetHeuristic)
  MINDPIPE_LT(check, cublasLtMatmulAlgoCheck)
  MINDPIPE_LT(initialize_description, cublasLtMatmulDescInit_internal)
  MINDPIPE_LT(set_description, cublasLtMatmulDescSetAttribute)
  MINDPIPE_LT(initialize_layout, cublasLtMatrixLayoutInit_internal)
  MINDPIPE_LT(initialize_preference, cublasLtMatmulPreferenceInit_internal)
  MINDPIPE_LT(set_preference, cublasLtMatmulPreferenceSetAttribute)
#undef MINDPIPE_LT
  cublasLtHandle_t handle = nullptr;

  BlasLt();
  ~BlasLt() { destroy(handle); }
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;
  /// Throws a sentence: what was called, for which product, what came back, what to do about it.
  [[noreturn]] void refuse(cublasStatus_t result, const char* call, const std::string& question) const;
};

}  // namespace mindpipe::cuda
