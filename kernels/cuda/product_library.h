#pragma once
#include <map>
#include <optional>
#include <vector>

#include "cuda/blas_lt.h"
#include "cuda/product_key.h"
#include "cuda/tuned_table.h"

namespace mindpipe::cuda {

/// Where the operands of a product lie, as in ProductLayout; d is added to where the layout accumulates.
struct ProductOperands {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* before = nullptr;  ///< read by gelu_backward, written by the others
};

/// Products by cuBLASLt. An algorithm is chosen once for each key: the table's, else the library's first
/// proposal for the shape under a fixed limit of workspace, with sums that are not split over blocks; never
/// by timing, and never by addresses, which only have to be as aligned as the layout says.
class ProductLibrary {
 public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  static constexpr std::size_t sums_bytes = std::size_t{32} << 20;  ///< beside it: what another pass reads
  /// A table that fits this GPU and library; before the first product.
  void use(TunedTable table) { table_ = std::move(table); }

  std::int64_t version() const { return static_cast<std::int64_t>(lt_.version()); }
  /// Whether the library has an algorithm for this; if not, a smaller epilogue may have one.
  bool has(const ProductKey& key) { return plan_of(key).has_value(); }
  /// Computes a product, or answers false where the library has no algorithm for it, or refuses as it is run
  /// what it has proposed: nothing has been computed then, and `has` is false from there on.
  /// `workspace`: workspace_bytes that nobody else uses in this stream meanwhile.
  bool try_run(const ProductKey& key, const ProductOperands& operands, void* workspace, cudaStream_t stream);
  /// Computes a product that there is no other way to compute.
  void run(const ProductKey& key, const ProductOperands& operands, void* workspace, cudaStream_t stream);
  /// The library's proposals, best first, to be timed by `doctor --tune`.
  std::vector<AlgorithmWords> proposals(const ProductKey& key, int count);
  /// Lets this algorithm compute the key from now on.
  void choose(const ProductKey& key, const AlgorithmWords& algorithm);

 private:
  /// A product as the library describes it.
  struct Description {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    bool accumulate = false, in_f64 = false;
  };
  struct Plan {
    Description description;
    cublasLtMatmulAlgo_t algorithm;
  };
  /// Refuses what a call that concerns this product answered, unless it went well.
  void require(cublasStatus_t answer, const char* call, const ProductKey& key) const {
    if (answer != CUBLAS_STATUS_SUCCESS) lt_.refuse(answer, call, to_string(key));
  }
  Description describe(const ProductKey& key) const;
  std::vector<cublasLtMatmulAlgo_t> ask(const ProductKey& key, Description& description, int count) const;
  Plan plan_with(const ProductKey& key, const AlgorithmWords& algorithm) const;
  std::optional<Plan>& plan_of(const ProductKey& key);
  cublasStatus_t multiply(const ProductKey& key, Plan& plan, const ProductOperands& operands, void* workspace,
                          cudaStream_t stream) const;

  BlasLt lt_;
  TunedTable table_;
  std::map<ProductKey, std::optional<Plan>> plans_;
};

}  // namespace mindpipe::cuda
