#pragma once
#include <cublasLt.h>

#include <string>

#include "core/handle.h"

namespace mindpipe::cuda {

/// The functions of cuBLASLt, found in the library when the first GPU backend is made: a program that
/// computes on processors neither needs nor opens it.
struct BlasLt {
  BlasLt();
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtMatmul) multiply;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoCheck) check;
  decltype(&cublasLtMatmulDescInit_internal) initialize_description;
  decltype(&cublasLtMatmulDescSetAttribute) set_description;
  decltype(&cublasLtMatrixLayoutInit_internal) initialize_layout;
  decltype(&cublasLtMatmulPreferenceInit_internal) initialize_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;

  /// Throws a sentence unless a call went well; describe() names the product, when it has to be named.
  template <class Describe>
  void require(cublasStatus_t result, const char* call, const Describe& describe) const {
    if (result != CUBLAS_STATUS_SUCCESS) refuse(result, call, describe());
  }
  [[noreturn]] void refuse(cublasStatus_t result, const char* call, const std::string& question) const;
};

}  // namespace mindpipe::cuda
