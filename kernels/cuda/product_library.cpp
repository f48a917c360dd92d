#include "cuda/product_library.h"

#include <cstring>

#include "core/log.h"

namespace mindpipe::cuda {
namespace {

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::f64 ? CUDA_R_64F : dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// What the library calls them, in the order of Epilogue.
constexpr cublasLtEpilogue_t epilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_BIAS,          CUBLASLT_EPILOGUE_RELU,
    CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU,          CUBLASLT_EPILOGUE_GELU_BIAS,
    CUBLASLT_EPILOGUE_GELU_AUX,  CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU};

/// An address that is aligned to `bytes` and no more, for the library to read its alignment off.
const void* aligned_address(int bytes) {
  return reinterpret_cast<const void*>(std::uintptr_t{1} << 20 | static_cast<std::uintptr_t>(bytes));
}

/// Whether a product was not begun because the library will not compute it so; other answers are failures.
bool is_refusal(cublasStatus_t answer) {
  return answer == CUBLAS_STATUS_NOT_SUPPORTED || answer == CUBLAS_STATUS_INVALID_VALUE ||
         answer == CUBLAS_STATUS_ARCH_MISMATCH;
}

void require_alignment(const void* address, const ColumnMatrix& matrix, const ProductKey& key,
                       const char* name) {
  MP_CHECK(reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(matrix.alignment) == 0,
           "{}: {} is not aligned to {} bytes, which operands of its size are", to_string(key), name,
           matrix.alignment);
}

}  // namespace

ProductLibrary::Description ProductLibrary::describe(const ProductKey& key) const {
  const ProductLayout layout = layout_of(key);
  Description made{};
  made.accumulate = layout.accumulate;
  made.in_f64 = key.operands == DType::f64;
  const auto attribute = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    require(lt_.set_description(&made.product, name, &value, sizeof value), "cublasLtMatmulDescSetAttribute",
            key);
  };
  const auto matrix = [&](cublasLtMatrixLayoutOpaque_t& to, const ColumnMatrix& from) {
    require(lt_.initialize_layout(&to, sizeof to, type_of(from.dtype), static_cast<std::uint64_t>(from.rows),
                                  static_cast<std::uint64_t>(from.cols), from.leading),
            "cublasLtMatrixLayoutInit", key);
  };
  // f32 is f32: no TF32 unless a compute type asks for it.
  require(lt_.initialize_description(&made.product, sizeof made.product,
                                     made.in_f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                     made.in_f64 ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescInit", key);
  attribute(CUBLASLT_MATMUL_DESC_TRANSA, layout.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  attribute(CUBLASLT_MATMUL_DESC_TRANSB, layout.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogues[static_cast<int>(key.epilogue)]);
  if (key.processors > 0) attribute(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{key.processors});
  if (has_bias(key.epilogue))
    attribute(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned_address(alignment_of(layout.d.rows, key.result)));
  if (has_before(key.epilogue)) {
    attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned_address(layout.d.alignment));
    attribute(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, layout.d.leading);
  }
  matrix(made.a, layout.a);
  matrix(made.b, layout.b);
  matrix(made.d, layout.d);
  return made;
}

std::vector<cublasLtMatmulAlgo_t> ProductLibrary::ask(const ProductKey& key, Description& description,
                                                      int count) const {
  const ProductLayout layout = layout_of(key);
  cublasLtMatmulPreferenceOpaque_t preference;
  require(lt_.initialize_preference(&preference, sizeof preference), "cublasLtMatmulPreferenceInit", key);
  const auto attribute = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    require(lt_.set_preference(&preference, name, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute", key);
  };
  attribute(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  // Sums that are split lie in the workspace in the type that they are computed in, and are added in order.
  attribute(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
            std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(layout.a.alignment));
  attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(layout.b.alignment));
  attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(layout.d.alignment));
  attribute(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(layout.d.alignment));
  if (key.operands == DType::f32)  // multiply-adds in f32, whatever an environment variable would allow
    attribute(CUBLASLT_MATMUL_PREF_IMPL_MASK, std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA |
                                                            CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F |
                                                            CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F});

  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(count));
  int found = 0;
  const cublasStatus_t answer =
      lt_.heuristic(lt_.handle, &description.product, &description.a, &description.b, &description.d,
                    &description.d, &preference, count, results.data(), &found);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (answer == CUBLAS_STATUS_NOT_SUPPORTED) return algorithms;
  require(answer, "cublasLtMatmulAlgoGetHeuristic", key);
  for (int i = 0; i < found; ++i)
    if (results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(results[static_cast<std::size_t>(i)].algo);
  return algorithms;
}

ProductLibrary::Plan ProductLibrary::plan_with(const ProductKey& key, const AlgorithmWords& words) const {
  Plan plan{describe(key), {}};
  static_assert(sizeof plan.algorithm == sizeof words);
  std::memcpy(&plan.algorithm, words.data(), sizeof words);
  cublasLtMatmulHeuristicResult_t result;
  Description& d = plan.description;
  const cublasStatus_t answer =
      lt_.check(lt_.handle, &d.product, &d.a, &d.b, &d.d, &d.d, &plan.algorithm, &result);
  MP_REQUIRE(answer == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace_bytes,
             Exit::bad_configuration,
             "device.kernels: the algorithm for '{}' does not fit it ({}); write the table anew with "
             "mindpipe-train doctor --tune",
             to_string(key), lt_.status_name(answer));
  return plan;
}

std::optional<ProductLibrary::Plan>& ProductLibrary::plan_of(const ProductKey& key) {
  const auto [at, is_new] = plans_.try_emplace(key);
  if (is_new) {
    if (const AlgorithmWords* tuned = table_.find(key)) {
      at->second = plan_with(key, *tuned);
    } else {
      Description description = describe(key);
      const auto algorithms = ask(key, description, 1);
      if (!algorithms.empty()) at->second = Plan{description, algorithms.front()};
    }
  }
  return at->second;
}

cublasStatus_t ProductLibrary::multiply(const ProductKey& key, Plan& plan, const ProductOperands& operands,
                                        void* workspace, cudaStream_t stream) const {
  const ProductLayout layout = layout_of(key);
  require_alignment(operands.a, layout.a, key, "a");
  require_alignment(operands.b, layout.b, key, "b");
  require_alignment(operands.d, layout.d, key, "the result");
  if (has_before(key.epilogue)) require_alignment(operands.before, layout.d, key, "before");
  Description& d = plan.description;
  const auto pointer = [&](cublasLtMatmulDescAttributes_t name, const void* to) {
    require(lt_.set_description(&d.product, name, &to, sizeof to), "cublasLtMatmulDescSetAttribute", key);
  };
  if (has_bias(key.epilogue)) {
    require_alignment(
        operands.bias,
        {key.result, layout.d.rows, 1, layout.d.rows, false, alignment_of(layout.d.rows, key.result)}, key,
        "bias");
    pointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  if (has_before(key.epilogue)) pointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.before);
  const float one = 1, old = d.accumulate ? 1.0f : 0.0f;
  const double one_f64 = 1, old_f64 = old;
  const void *alpha = &one, *beta = &old;
  if (d.in_f64) {
    alpha = &one_f64;
    beta = &old_f64;
  }
  return lt_.multiply(lt_.handle, &d.product, alpha, operands.a, &d.a, operands.b, &d.b, beta, operands.d,
                      &d.d, operands.d, &d.d, &plan.algorithm, workspace, workspace_bytes, stream);
}

bool ProductLibrary::try_run(const ProductKey& key, const ProductOperands& operands, void* workspace,
                             cudaStream_t stream) {
  std::optional<Plan>& plan = plan_of(key);
  if (!plan) return false;
  const cublasStatus_t answer = multiply(key, *plan, operands, workspace, stream);
  if (!is_refusal(answer)) {
    require(answer, "cublasLtMatmul", key);
    return true;
  }
  warning(
      "cublasLt: cublasLtMatmul answered {} for {}, for which it had proposed an algorithm; it is not asked "
      "for that product again",
      lt_.status_name(answer), to_string(key));
  plan.reset();
  return false;
}

void ProductLibrary::run(const ProductKey& key, const ProductOperands& operands, void* workspace,
                         cudaStream_t stream) {
  const bool has_run = try_run(key, operands, workspace, stream);
  MP_CHECK(has_run, "cublasLt has no algorithm for {}", to_string(key));
}

std::vector<AlgorithmWords> ProductLibrary::proposals(const ProductKey& key, int count) {
  Description description = describe(key);
  std::vector<AlgorithmWords> words;
  for (const cublasLtMatmulAlgo_t& algorithm : ask(key, description, count)) {
    AlgorithmWords& to = words.emplace_back();
    std::memcpy(to.data(), &algorithm, sizeof to);
  }
  return words;
}

void ProductLibrary::choose(const ProductKey& key, const AlgorithmWords& algorithm) {
  plans_[key] = plan_with(key, algorithm);
}

}  // namespace mindpipe::cuda
