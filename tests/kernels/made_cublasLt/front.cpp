#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "device_stream.h"
#include "kernels/made_cublasLt/beside.h"
#include "kernels/made_cublasLt/made_cublasLt.h"
#include "kernels/made_cublasLt/product.h"

struct cublasLtContext {};

/// cuBLASLt's functions, as its documentation describes them, and what tests change about them.
namespace made_cublasLt {
namespace {

struct Front {
  std::vector<std::string> calls;
  int left_out = -1, exchanged = -1, runs = 0;
  const void* put_off_of = nullptr;  ///< what the call concerns that is put off
  std::function<cublasStatus_t()> put_off;
  bool has_exchanged = false;
  std::string said, last_work;
  Epilogues plans_nothing, refuses;
  cublasStatus_t refused_with = CUBLAS_STATUS_SUCCESS;
} front;
std::set<cublasLtHandle_t> handles;

cublasStatus_t refuse(cublasStatus_t status, const std::string& why) {
  front.said = why;
  return status;
}

/// Makes a call that concerns a structure of the caller's, unless a test wants it otherwise.
cublasStatus_t pass(const std::string& call, const void* of, std::function<cublasStatus_t()> work) {
  const int number = static_cast<int>(front.calls.size());
  front.calls.push_back(call);
  if (number == front.left_out) return CUBLAS_STATUS_SUCCESS;
  if (number == front.exchanged && of != nullptr) {
    front.put_off = std::move(work);
    front.put_off_of = of;
    return CUBLAS_STATUS_SUCCESS;
  }
  const auto before = std::exchange(front.put_off, {});
  front.has_exchanged = front.has_exchanged || (before && of == front.put_off_of);
  if (!before) return work();
  const cublasStatus_t first = of == front.put_off_of ? work() : before(),
                       then = of == front.put_off_of ? before() : work();
  return first == CUBLAS_STATUS_SUCCESS ? then : first;
}

std::vector<char> copied(const void* value, std::size_t bytes) {
  return value == nullptr
             ? std::vector<char>()
             : std::vector<char>(static_cast<const char*>(value), static_cast<const char*>(value) + bytes);
}

/// What stands in an opaque structure of the library's.
template <class Own, class Opaque>
Own own(const Opaque* from) {
  static_assert(sizeof(Own) <= sizeof(Opaque));
  Own made;
  if (from != nullptr) std::memcpy(static_cast<void*>(&made), from, sizeof made);
  else made.mark = 0;
  return made;
}
template <class Own, class Opaque>
void put(Opaque* to, const Own& from) {
  std::memcpy(to, &from, sizeof from);
}

/// Reads a value of its type; false where it has another size.
template <class Value>
bool read(Value& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof to) return false;
  std::memcpy(&to, from, sizeof to);
  return true;
}

bool set(Description& d, cublasLtMatmulDescAttributes_t name, const void* value, std::size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return read(d.transposed_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return read(d.transposed_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return read(d.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return read(d.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return read(d.before, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return read(d.before_leading, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return read(d.multiprocessors, value, bytes);
    default:
      return false;
  }
}

bool set(Preference& p, cublasLtMatmulPreferenceAttributes_t name, const void* value, std::size_t bytes) {
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return read(p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return read(p.schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return read(p.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return read(p.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return read(p.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return read(p.alignment[3], value, bytes);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return read(p.implementations, value, bytes);
    default:
      return false;
  }
}

Product product_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {own<Description>(description), own<Matrix>(a), own<Matrix>(b), own<Matrix>(c), own<Matrix>(d)};
}

/// Algorithms for a product, best first.
std::vector<Algorithm> proposals(const Product& p, const Preference& preference) {
  const bool may_be_tf32 =
      p.a.type == CUDA_R_32F && (preference.implementations & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32) != 0;
  std::vector<Way> ways;
  if (may_be_tf32) ways.push_back(Way::in_tf32);
  constexpr std::uint32_t ordered =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // partial sums, unrounded, added in order
  if ((preference.schemes & ~ordered) != 0) ways.push_back(Way::in_halves);
  if (preference.workspace >= Algorithm::workspace_bytes) ways.push_back(Way::whole);
  ways.push_back(Way::without_workspace);
  std::vector<Algorithm> found;
  for (const Way way : ways) {
    Algorithm& made = found.emplace_back();
    made.mark = Algorithm::is_one;
    made.way = way;
    made.problem = p.hash();
    std::copy_n(preference.alignment, 4, made.alignment);
    if (p.description.has_bias()) made.of_bias = alignment_of(p.description.bias);
    if (p.description.has_before()) made.of_before = alignment_of(p.description.before);
    made.workspace =
        way == Way::without_workspace ? 0 : std::min(preference.workspace, Algorithm::workspace_bytes);
  }
  return found;
}

cublasStatus_t propose(cublasLtHandle_t handle, const Product& product, cublasLtMatmulPreference_t asked_with,
                       int wanted, cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (!handles.contains(handle)) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "a handle that there is not");
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (const std::string fault = product.fault(status); !fault.empty()) return refuse(status, fault);
  const auto preference = own<Preference>(asked_with);
  if (preference.mark != Preference::is_one)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "a preference that was not initialised");
  put(asked_with, Preference{});  // no preference of this program is asked with twice
  if (wanted < 1) return refuse(CUBLAS_STATUS_INVALID_VALUE, "no algorithm is asked for");
  *count = 0;
  if (front.plans_nothing && front.plans_nothing(product.description.epilogue))
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "a test wants no plan");
  for (const Algorithm& algorithm : proposals(product, preference)) {
    if (*count == wanted) break;
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    put(&result.algo, algorithm);
    result.workspaceSize = algorithm.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

double scalar(const void* at, int type) {
  return type == CUDA_R_64F ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
}

}  // namespace

void begin() { front = Front{}; }
int calls() { return static_cast<int>(front.calls.size()); }
std::string call(int number) { return front.calls.at(static_cast<std::size_t>(number)); }
void leave_out(int number) { front.left_out = number; }
void exchange(int number) { front.exchanged = number; }
bool has_exchanged() { return front.has_exchanged; }
std::string said() { return front.said; }
void plan_nothing(const Epilogues& of) { front.plans_nothing = of; }
void refuse_to_run(const Epilogues& of, int status) {
  front.refuses = of;
  front.refused_with = static_cast<cublasStatus_t>(status);
}
int runs() { return front.runs; }
std::string last_work() { return front.last_work; }
int alive() { return static_cast<int>(handles.size()); }

}  // namespace made_cublasLt

using namespace made_cublasLt;

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "another status";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return pass("create", nullptr,
              [&] { return handles.insert(*handle = new cublasLtContext), CUBLAS_STATUS_SUCCESS; });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (handles.erase(handle) != 1) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "a handle that there is not");
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, std::size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  return pass("describe", to, [=] {
    if (to == nullptr || bytes < sizeof *to) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little room");
    std::memset(to, 0, sizeof *to);
    Description made{Description::is_one, beside::describe(compute, scale), compute, scale};
    put(to, made);
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  return pass("describe, attribute " + std::to_string(name), to, [=, copy = copied(value, bytes)] {
    auto made = own<Description>(to);
    if (made.mark != Description::is_one || !set(made, name, copy.data(), copy.size()))
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of a description, or its size");
    beside::set(made.shadow, name, copy.data(), copy.size());
    put(to, made);
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, std::size_t bytes,
                                                 cudaDataType type, std::uint64_t rows, std::uint64_t cols,
                                                 std::int64_t leading) {
  return pass("layout", to, [=] {
    if (to == nullptr || bytes < sizeof *to) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little room");
    std::memset(to, 0, sizeof *to);
    put(to, Matrix{Matrix::is_one, beside::layout(type, rows, cols, leading), type,
                   static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), leading});
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, std::size_t bytes) {
  return pass("prefer", to, [=] {
    if (to == nullptr || bytes < sizeof *to) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "too little room");
    Preference made;
    made.mark = Preference::is_one;
    put(to, made);
    beside::prefer();
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  return pass("prefer, attribute " + std::to_string(name), to, [=, copy = copied(value, bytes)] {
    auto made = own<Preference>(to);
    if (made.mark != Preference::is_one || !set(made, name, copy.data(), copy.size()))
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of a preference, or its size");
    put(to, made);
    beside::prefer(name, copy.data(), copy.size());
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  return pass("propose", preference, [&] {
    const Product product = product_of(description, a, b, c, d);
    beside::compare(product);
    return propose(handle, product, preference, wanted, results, count);
  });
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  return pass("check", description, [&] {
    if (!handles.contains(handle)) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "a handle that there is not");
    const Product product = product_of(description, a, b, c, d);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (const std::string fault = product.fault(status); !fault.empty()) return refuse(status, fault);
    const auto algorithm = own<Algorithm>(algo);
    if (algorithm.mark != Algorithm::is_one || algorithm.problem != product.hash())
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "an algorithm that was found for another product");
    result->workspaceSize = algorithm.workspace;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t bytes,
                              cudaStream_t stream) {
  return pass("multiply", description, [&] {
    if (!handles.contains(handle)) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "a handle that there is not");
    const Product product = product_of(description, a_layout, b_layout, c_layout, d_layout);
    beside::compare(product);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (const std::string fault = product.fault(status); !fault.empty()) return refuse(status, fault);
    if (alpha == nullptr || beta == nullptr) return refuse(CUBLAS_STATUS_INVALID_VALUE, "no alpha or beta");
    const int scale = product.description.scale;
    const Addresses at{a, b, c, d, scalar(alpha, scale), scalar(beta, scale)};
    const auto algorithm = own<Algorithm>(algo);
    if (const std::string fault = fault_of_call(product, algorithm, at, workspace, bytes); !fault.empty())
      return refuse(CUBLAS_STATUS_INVALID_VALUE, fault);
    if (front.refuses && front.refuses(product.description.epilogue))
      return refuse(front.refused_with, "a test wants it refused");
    ++front.runs;
    front.last_work = std::to_string(static_cast<int>(algorithm.way)) + " on " +
                      std::to_string(product.description.multiprocessors);
    const auto work = [=] {
      if (algorithm.workspace > 0) std::memset(workspace, 0xff, algorithm.workspace);
      compute(product, at, algorithm.way);
      return true;
    };
    if (stream == nullptr) work();
    else stream->put(work);
    return CUBLAS_STATUS_SUCCESS;
  });
}

}  // extern "C"
