#pragma once
#include <cublasLt.h>

#include <cstdint>
#include <string>

/// A product as the stand-in has understood it.
namespace made_cublasLt {

struct Matrix {
  static constexpr std::uint32_t is_one = 0x4D617472;
  std::uint32_t mark = 0, shadow = 0;
  std::int32_t type = -1;
  std::int64_t rows = 0, cols = 0, leading = 0;
  std::int64_t bytes() const;
};

struct Description {
  static constexpr std::uint32_t is_one = 0x44657363;
  std::uint32_t mark = 0, shadow = 0;
  std::int32_t compute = 0, scale = 0, transposed_a = CUBLAS_OP_N, transposed_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t multiprocessors = 0;
  const void* bias = nullptr;
  void* before = nullptr;
  std::int64_t before_leading = 0;
  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool has_before() const { return (epilogue & 128) != 0; }
};

struct Preference {
  static constexpr std::uint32_t is_one = 0x50726566;
  std::uint32_t mark = 0;
  std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint64_t workspace = 0, implementations = ~std::uint64_t{0};
  std::uint32_t alignment[4] = {256, 256, 256, 256};  ///< bytes that a, b, c and d are aligned to
};

/// How sums are made. What a preference does not forbid comes first, so that whoever forgets to forbid it
/// gets other bits.
enum class Way : std::uint32_t { whole, in_halves, in_tf32, without_workspace };

struct Algorithm {
  static constexpr std::uint32_t is_one = 0x416C676F;
  static constexpr std::uint64_t workspace_bytes = 1 << 20;
  std::uint32_t mark = 0;
  Way way = Way::whole;
  std::uint64_t problem = 0;  ///< a hash of the product that it was found for
  std::uint16_t alignment[4] = {}, of_bias = 1, of_before = 1;
  std::uint64_t workspace = 0;
};

/// A product in full: description and layouts.
struct Product {
  Description description;
  Matrix a, b, c, d;

  std::int64_t depth() const { return description.transposed_a == CUBLAS_OP_N ? a.cols : a.rows; }
  /// What the documentation has against it; empty: nothing. `status`: what a call answers then.
  std::string fault(cublasStatus_t& status) const;
  std::uint64_t hash() const;
};

struct Addresses {
  const void *a, *b, *c;
  void* d;
  double alpha, beta;
};

/// The widest power of two up to 256 that divides an address.
std::uint16_t alignment_of(const void* address);
/// What is wrong with the call of a product that is right itself; empty: nothing.
std::string fault_of_call(const Product& product, const Algorithm& algorithm, const Addresses& at,
                          const void* workspace, std::size_t bytes);

/// d = epilogue(alpha op(a) op(b) + beta c), element by element.
void compute(const Product& product, const Addresses& at, Way way);

}  // namespace made_cublasLt
