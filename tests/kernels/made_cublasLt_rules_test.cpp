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

/// The structure of a call that is left as it was found.
enum class Forgotten : std::uint8_t { nothing, handle, description, a, b, c, d, preference, algorithm };

/// Calls for a product with a bias and an auxiliary matrix, which the library takes; cases spoil them.
struct Raw {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F, type = CUDA_R_32F, type_of_d = CUDA_R_32F;
  std::uint64_t rows = 16, cols = 8, depth = 24;
  std::int64_t leading_a = 24, leading_b = 24, leading_c = 16, leading_d = 16, leading_before = 16;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS, alignment = 16;
  std::size_t size_of_epilogue = sizeof epilogue, workspace_bytes = 1 << 20;
  std::uint64_t rows_asked = 16;    ///< rows of the product that the algorithm was asked for
  std::int64_t leading_asked = 16;  ///< the leading dimension of its c
  std::uint64_t room = 1 << 20;     ///< bytes of workspace that it may have
  int wanted = 1;
  bool has_bias = true, has_before = true, has_alpha = true, has_workspace = true, has_bias_memory = true;
  std::ptrdiff_t a_at = 16, b_at = 16, d_at = 16, before_at = 16, bias_at = 16, workspace_at = 0,
                 c_from_d = 0;
  std::ptrdiff_t bias_at_run = 16, before_at_run = 16;  ///< where they are when the product is run
  bool d_over_a = false, d_over_b = false;
  Forgotten forgotten = Forgotten::nothing;
  bool checks = false;       ///< the algorithm is checked for the product instead of run
  bool is_stubborn = false;  ///< goes on where a description is refused
  std::size_t room_of_description = sizeof(cublasLtMatmulDescOpaque_t);

  struct alignas(256) Block {
    std::byte bytes[4096];
    void* at(std::ptrdiff_t offset) { return bytes + offset; }
  };
  std::vector<Block> a{2}, b{2}, d{2}, before{2}, bias{1}, workspace{(1 << 8) + 2};
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDescOpaque_t description{};
  cublasLtMatrixLayoutOpaque_t layout_a{}, layout_b{}, layout_c{}, layout_d{}, asked_c{}, asked_d{};
  cublasLtMatmulPreferenceOpaque_t preference{};
  cublasLtMatmulHeuristicResult_t result{};

  bool has(Forgotten part) const { return forgotten != part; }
  template <class Value>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t name, const Value& value,
                     std::size_t bytes = sizeof(Value)) {
    return cublasLtMatmulDescSetAttribute(&description, name, &value, bytes);
  }
  void point(std::ptrdiff_t bias_offset, std::ptrdiff_t before_offset) {
    void *its_bias = bias[0].at(bias_offset), *its_before = before[0].at(before_offset);
    if (!has_bias_memory) its_bias = reinterpret_cast<void*>(std::uintptr_t{1} << 20 | 16);
    if (has_bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, its_bias);
    if (has_before) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, its_before);
  }
  cublasStatus_t describe() {
    if (has(Forgotten::description)) {
      const cublasStatus_t answer =
          cublasLtMatmulDescInit_internal(&description, room_of_description, compute, scale);
      if (answer != CUBLAS_STATUS_SUCCESS) return answer;
    }
    const std::int32_t turned = CUBLAS_OP_T;
    set(CUBLASLT_MATMUL_DESC_TRANSA, turned);
    const cublasStatus_t answer = set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue, size_of_epilogue);
    point(bias_at, before_at);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading_before);
    if (has(Forgotten::a)) cublasLtMatrixLayoutInit(&layout_a, type, depth, rows, leading_a);
    if (has(Forgotten::b)) cublasLtMatrixLayoutInit(&layout_b, type, depth, cols, leading_b);
    if (has(Forgotten::c)) cublasLtMatrixLayoutInit(&layout_c, type_of_d, rows, cols, leading_c);
    if (has(Forgotten::d)) cublasLtMatrixLayoutInit(&layout_d, type_of_d, rows, cols, leading_d);
    cublasLtMatrixLayoutInit(&asked_c, type_of_d, rows_asked, cols, leading_asked);
    cublasLtMatrixLayoutInit(&asked_d, type_of_d, rows_asked, cols, leading_d);
    return answer;
  }
  void prefer() {
    if (has(Forgotten::preference)) cublasLtMatmulPreferenceInit(&preference);
    cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                         sizeof room);
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      cublasLtMatmulPreferenceSetAttribute(&preference, name, &alignment, sizeof alignment);
  }
  cublasStatus_t propose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(
        handle, &description, &layout_a, &layout_b, has(Forgotten::c) ? &asked_c : &layout_c,
        has(Forgotten::d) ? &asked_d : &layout_d, &preference, wanted, &result, &found);
  }
  cublasStatus_t multiply() {
    const double one_f64 = 1;
    const float one = 1;
    const void* factor = scale == CUDA_R_64F ? static_cast<const void*>(&one_f64) : &one;
    std::byte *a_is = a[0].bytes + a_at, *b_is = b[0].bytes + b_at, *d_is = d[0].bytes + d_at;
    if (d_over_a) d_is = a_is + 1024;
    if (d_over_b) d_is = b_is + 512;
    if (!has(Forgotten::algorithm)) result.algo = {};
    point(bias_at_run, before_at_run);
    if (checks)
      return cublasLtMatmulAlgoCheck(handle, &description, &layout_a, &layout_b, &layout_c, &layout_d,
                                     &result.algo, &result);
    return cublasLtMatmul(handle, &description, has_alpha ? factor : nullptr, a_is, &layout_a, b_is,
                          &layout_b, factor, d_is + c_from_d, &layout_c, d_is, &layout_d, &result.algo,
                          has_workspace ? workspace[0].at(workspace_at) : nullptr, workspace_bytes, nullptr);
  }
  cublasStatus_t run() {
    if (has(Forgotten::handle)) cublasLtCreate(&handle);
    cublasStatus_t answer = describe();
    prefer();
    if (answer == CUBLAS_STATUS_SUCCESS || is_stubborn) answer = propose();
    if (answer == CUBLAS_STATUS_SUCCESS) answer = multiply();
    if (handle != nullptr) cublasLtDestroy(handle);
    return answer;
  }
};

struct Case {
  const char* said;
  cublasStatus_t status;
  std::function<void(Raw&)> spoil;
};

void expect_refused(const std::vector<Case>& cases) {
  made_cublasLt::begin();
  EXPECT_EQ(Raw().run(), CUBLAS_STATUS_SUCCESS) << made_cublasLt::said();
  EXPECT_EQ(made_cublasLt::said(), "");
  for (const Case& c : cases) {
    made_cublasLt::begin();
    Raw raw;
    c.spoil(raw);
    EXPECT_EQ(raw.run(), c.status) << c.said;
    EXPECT_THAT(made_cublasLt::said(), HasSubstr(c.said));
  }
}

const std::vector<Case> of_descriptions = {
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
    {"a leading dimension below the rows", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.leading_b = 16; }},
    {"without elements", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.cols = 0; }},
    {"no algorithm is asked for", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.wanted = 0; }},
    {"a handle that there is not", CUBLAS_STATUS_NOT_INITIALIZED,
     [](Raw& r) { r.forgotten = Forgotten::handle; }},
    {"an attribute of a description", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::description; }},
    {"a preference that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::preference; }},
    {"a layout that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::a; }},
    {"a layout that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::b; }},
    {"a layout that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::c; }},
    {"a layout that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.forgotten = Forgotten::d; }},
    {"a description that was not initialised", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) {
       r.forgotten = Forgotten::description;
       r.is_stubborn = true;
     }},
    {"too little room", CUBLAS_STATUS_ALLOC_FAILED, [](Raw& r) { r.room_of_description = 8; }}};
const std::vector<Case> of_operands = {
    {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.a_at = 8; }},
    {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.alignment = 32; }},
    {"an auxiliary matrix that is less aligned", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.before_at_run = 8; }},
    {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.workspace_at = 128; }},
    {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.workspace_bytes = (1 << 20) - 1; }},
    {"over a part of c", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.c_from_d = 16; }},
    {"no alpha", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.has_alpha = false; }},
    {"over an operand", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.d_over_a = true; }},
    {"over an operand", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.d_over_b = true; }},
    {"in place of c whose layout is another", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.leading_c = r.leading_asked = 32; }},
    {"for another product", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.leading_asked = 32; }},
    {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.b_at = 8; }},
    {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.d_at = 8; }},
    {"not as aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.c_from_d = 2040; }},
    {"a bias that is less aligned", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.bias_at_run = 8; }},
    {"an auxiliary matrix that is less aligned", CUBLAS_STATUS_INVALID_VALUE,
     [](Raw& r) { r.before_at = 64; }},
    {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.has_workspace = false; }},
    {"a workspace", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.workspace_bytes = 0; }},
    {"where there is no memory", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.has_bias_memory = false; }},
    {"for another product", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) { r.forgotten = Forgotten::algorithm; }},
    {"for another product", CUBLAS_STATUS_INVALID_VALUE, [](Raw& r) {
       r.forgotten = Forgotten::algorithm;
       r.checks = true;
     }}};

TEST(MadeCublasLtRules, ADescriptionThatTheDocumentationForbidsIsRefused) { expect_refused(of_descriptions); }

TEST(MadeCublasLtRules, OperandsThatTheDocumentationForbidsAreRefused) { expect_refused(of_operands); }

}  // namespace
}  // namespace mindpipe::cuda
