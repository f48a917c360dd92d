// thorough
#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/made_cublasLt/made_cublasLt.h"

// What the library that stands in for cuBLASLt refuses, call by call.
namespace mindpipe::cuda {
namespace {

using ::testing::HasSubstr;

/// A call of the library that it takes, of a product with a bias and an auxiliary matrix; cases spoil it.
struct Raw {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F, type = CUDA_R_32F, type_of_d = CUDA_R_32F;
  std::uint64_t rows = 16, cols = 8, depth = 24;
  std::int64_t leading_a = 24, leading_d = 16, leading_before = 16;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, alignment = 16;
  std::size_t size_of_epilogue = sizeof epilogue, workspace_bytes = 1 << 20;
  std::uint64_t rows_asked = 16;  ///< rows of the product that the algorithm was asked for
  bool has_bias = true, has_before = true, has_alpha = true;
  std::ptrdiff_t a_at = 16, d_at = 16, before_at = 16, bias_at = 16, workspace_at = 0, c_from_d = 0;

  cublasStatus_t run() {
    struct alignas(256) Block {
      std::byte bytes[4096];
    };
    std::vector<Block> a(2), b(2), d(2), before(2), bias(1), workspace((workspace_bytes >> 12) + 2);
    const auto at = [](std::vector<Block>& block, std::ptrdiff_t offset) -> void* {
      return block[0].bytes + offset;
    };
    cublasLtMatmulDescOpaque_t description;
    cublasLtMatrixLayoutOpaque_t layout_a, layout_b, layout_d, layout_asked;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtHandle_t handle = nullptr;
    cublasLtCreate(&handle);
    cublasLtMatmulDescInit(&description, compute, scale);
    const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value, std::size_t bytes) {
      return cublasLtMatmulDescSetAttribute(&description, name, &value, bytes);
    };
    const std::int32_t turned = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, turned, sizeof turned);
    cublasStatus_t answer = set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, size_of_epilogue);
    void *its_bias = at(bias, bias_at), *its_before = at(before, before_at);
    if (has_bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, its_bias, sizeof its_bias);
    if (has_before) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, its_before, sizeof its_before);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading_before, sizeof leading_before);
    cublasLtMatrixLayoutInit(&layout_a, type, depth, rows, leading_a);
    cublasLtMatrixLayoutInit(&layout_b, type, depth, cols, static_cast<std::int64_t>(depth));
    cublasLtMatrixLayoutInit(&layout_d, type_of_d, rows, cols, leading_d);
    cublasLtMatrixLayoutInit(&layout_asked, type_of_d, rows_asked, cols, leading_d);
    cublasLtMatmulPreferenceInit(&preference);
    const std::uint64_t room = 1 << 20;
    cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                         sizeof room);
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(&preference, name, &alignment, sizeof alignment);
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    if (answer == CUBLAS_STATUS_SUCCESS)
      answer = cublasLtMatmulAlgoGetHeuristic(handle, &description, &layout_a, &layout_b, &layout_asked,
                                              &layout_asked, &preference, 1, &result, &found);
    const double one_f64 = 1;
    const float one = 1;
    const void* factor = scale == CUDA_R_64F ? static_cast<const void*>(&one_f64) : &one;
    auto* result_at = static_cast<std::byte*>(at(d, d_at));
    if (answer == CUBLAS_STATUS_SUCCESS)
      answer = cublasLtMatmul(handle, &description, has_alpha ? factor : nullptr, at(a, a_at), &layout_a,
                              at(b, 16), &layout_b, factor, result_at + c_from_d, &layout_d, result_at,
                              &layout_d, &result.algo, at(workspace, workspace_at), workspace_bytes, nullptr);
    cublasLtDestroy(handle);
    return answer;
  }
};

TEST(MadeCublasLtRules, WhatTheDocumentationForbidsIsRefused) {
  made_cublasLt::begin();
  EXPECT_EQ(Raw().run(), CUBLAS_STATUS_SUCCESS) << made_cublasLt::said();
  struct Case {
    const char* said;
    cublasStatus_t status;
    std::function<void(Raw&)> spoil;
  };
  const Case cases[] = {
      {"a leading dimension below the rows", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.leading_a = 23; }},
      {"no multiple of 8", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.leading_before = 20; }},
      {"below the rows of d", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.leading_before = 8; }},
      {"a bias, and no pointer", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.has_bias = false; }},
      {"an auxiliary matrix, and no pointer", CUBLAS_STATUS_INVALID_VALUE,
       [](Raw& r) { r.has_before = false; }},
      {"or its size", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.size_of_epilogue = 8; }},
      {"do not fit together", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.rows_asked = 15; }},
      {"the table of types", CUBLAS_STATUS_NOT_SUPPORTED, [](Raw& r) { r.type_of_d = CUDA_R_16BF; }},
      {"the table of types", CUBLAS_STATUS_NOT_SUPPORTED, [](Raw& r) { r.scale = CUDA_R_64F; }},
      {"an epilogue of sums in f64", CUBLAS_STATUS_NOT_SUPPORTED,
       [](Raw& r) {
         r.compute = CUBLAS_COMPUTE_64F;
         r.scale = r.type = r.type_of_d = CUDA_R_64F;
       }},
      {"does not use", CUBLAS_STATUS_NOT_SUPPORTED, [](Raw& r) { r.epilogue = CUBLASLT_EPILOGUE_BGRADB; }},
      {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.a_at = 8; }},
      {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.alignment = 32; }},
      {"an auxiliary matrix that is less aligned", CUBLAS_STATUS_INVALID_VALUE,
       [](Raw& r) { r.before_at = 8; }},
      {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.workspace_at = 128; }},
      {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.workspace_bytes = (1 << 20) - 1; }},
      {"over a part of c", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.c_from_d = 16; }},
      {"no alpha", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.has_alpha = false; }},
  };
  for (const Case& c : cases) {
    Raw raw;
    c.spoil(raw);
    EXPECT_EQ(raw.run(), c.status) << c.said;
    EXPECT_THAT(made_cublasLt::said(), HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace mindpipe::cuda
