#include "kernels/made_cublasLt/beside.h"

#include <dlfcn.h>

#include <cstring>
#include <deque>
#include <vector>

#include "kernels/made_cublasLt/made_cublasLt.h"

namespace made_cublasLt {
namespace {

/// The real library's functions that need no device.
struct Real {
  decltype(&cublasLtMatmulDescInit_internal) describe;
  decltype(&cublasLtMatmulDescSetAttribute) set;
  decltype(&cublasLtMatmulDescGetAttribute) get;
  decltype(&cublasLtMatrixLayoutInit_internal) layout;
  decltype(&cublasLtMatrixLayoutGetAttribute) get_layout;
  decltype(&cublasLtMatmulPreferenceInit_internal) prefer;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulPreferenceGetAttribute) get_preference;
};

struct Beside {
  Real real{};
  bool is_open = false;
  std::deque<cublasLtMatmulDescOpaque_t> descriptions;
  std::deque<cublasLtMatrixLayoutOpaque_t> layouts;
  cublasLtMatmulPreferenceOpaque_t preference{};
  int calls = 0;
  std::string differs;

  void expect(bool holds, const std::string& what) {
    ++calls;
    if (!holds && differs.empty()) differs = what;
  }
  void expect(cublasStatus_t answer, const std::string& call) {
    expect(answer == CUBLAS_STATUS_SUCCESS, call + " answers " + std::to_string(answer));
  }
  /// What an attribute is to the real library, beside what it was set to.
  template <class Get, class Of, class Name, class Value>
  void expect_same(Get get, Of* of, Name name, const Value& wanted, const std::string& what) {
    Value got{};
    std::size_t written = 0;
    const cublasStatus_t answer = get(of, name, &got, sizeof got, &written);
    expect(answer == CUBLAS_STATUS_SUCCESS && written == sizeof got && got == wanted,
           what + " " + std::to_string(name) + " is another one to the real library");
  }
} all;

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool open_beside(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  Real& real = all.real;
  all.is_open = find(library, real.describe, "cublasLtMatmulDescInit_internal") &&
                find(library, real.set, "cublasLtMatmulDescSetAttribute") &&
                find(library, real.get, "cublasLtMatmulDescGetAttribute") &&
                find(library, real.layout, "cublasLtMatrixLayoutInit_internal") &&
                find(library, real.get_layout, "cublasLtMatrixLayoutGetAttribute") &&
                find(library, real.prefer, "cublasLtMatmulPreferenceInit_internal") &&
                find(library, real.set_preference, "cublasLtMatmulPreferenceSetAttribute") &&
                find(library, real.get_preference, "cublasLtMatmulPreferenceGetAttribute");
  return all.is_open;
}
std::string differs() { return all.differs; }
int made_beside() { return all.calls; }

namespace beside {

std::uint32_t describe(cublasComputeType_t compute, cudaDataType_t scale) {
  if (!all.is_open) return 0;
  cublasLtMatmulDescOpaque_t& made = all.descriptions.emplace_back();
  all.expect(all.real.describe(&made, sizeof made, compute, scale), "the beginning of a description");
  return static_cast<std::uint32_t>(all.descriptions.size() - 1);
}

std::uint32_t layout(cudaDataType_t type, std::uint64_t rows, std::uint64_t cols, std::int64_t leading) {
  if (!all.is_open) return 0;
  cublasLtMatrixLayoutOpaque_t& made = all.layouts.emplace_back();
  all.expect(all.real.layout(&made, sizeof made, type, rows, cols, leading), "the beginning of a layout");
  return static_cast<std::uint32_t>(all.layouts.size() - 1);
}

void set(std::uint32_t description, cublasLtMatmulDescAttributes_t name, const void* value,
         std::size_t bytes) {
  if (all.is_open)
    all.expect(all.real.set(&all.descriptions.at(description), name, value, bytes),
               "attribute " + std::to_string(name) + " of a description");
}

void prefer() {
  if (all.is_open)
    all.expect(all.real.prefer(&all.preference, sizeof all.preference), "the beginning of a preference");
}

void prefer(cublasLtMatmulPreferenceAttributes_t name, const void* value, std::size_t bytes) {
  if (!all.is_open) return;
  const std::string what = "attribute " + std::to_string(name) + " of a preference";
  all.expect(all.real.set_preference(&all.preference, name, value, bytes), what);
  std::vector<char> got(bytes);
  std::size_t written = 0;
  all.expect(
      all.real.get_preference(&all.preference, name, got.data(), bytes, &written) == CUBLAS_STATUS_SUCCESS &&
          written == bytes && std::memcmp(got.data(), value, bytes) == 0,
      what + " is another one to the real library");
}

void compare(const Product& p) {
  if (!all.is_open || p.description.mark != Description::is_one) return;
  const Description& d = p.description;
  cublasLtMatmulDescOpaque_t* description = &all.descriptions.at(d.shadow);
  const auto same = [&](cublasLtMatmulDescAttributes_t name, const auto& wanted) {
    all.expect_same(all.real.get, description, name, wanted, "attribute of a description");
  };
  same(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, d.compute);
  same(CUBLASLT_MATMUL_DESC_SCALE_TYPE, d.scale);
  same(CUBLASLT_MATMUL_DESC_TRANSA, d.transposed_a);
  same(CUBLASLT_MATMUL_DESC_TRANSB, d.transposed_b);
  same(CUBLASLT_MATMUL_DESC_EPILOGUE, d.epilogue);
  same(CUBLASLT_MATMUL_DESC_BIAS_POINTER, d.bias);
  same(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, d.before);
  same(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, d.before_leading);
  same(CUBLASLT_MATMUL_DESC_POINTER_MODE, std::int32_t{CUBLASLT_POINTER_MODE_HOST});
  for (const Matrix* matrix : {&p.a, &p.b, &p.c, &p.d}) {
    if (matrix->mark != Matrix::is_one) continue;
    cublasLtMatrixLayoutOpaque_t* layout = &all.layouts.at(matrix->shadow);
    const auto same_layout = [&](cublasLtMatrixLayoutAttribute_t name, const auto& wanted) {
      all.expect_same(all.real.get_layout, layout, name, wanted, "attribute of a layout");
    };
    same_layout(CUBLASLT_MATRIX_LAYOUT_TYPE, matrix->type);
    same_layout(CUBLASLT_MATRIX_LAYOUT_ORDER, std::int32_t{CUBLASLT_ORDER_COL});
    same_layout(CUBLASLT_MATRIX_LAYOUT_ROWS, static_cast<std::uint64_t>(matrix->rows));
    same_layout(CUBLASLT_MATRIX_LAYOUT_COLS, static_cast<std::uint64_t>(matrix->cols));
    same_layout(CUBLASLT_MATRIX_LAYOUT_LD, matrix->leading);
  }
}

}  // namespace beside

}  // namespace made_cublasLt
