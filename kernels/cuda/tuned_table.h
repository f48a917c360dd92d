#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "cuda/product_key.h"

/// The algorithms that `doctor --tune` found fastest: an input of a run (device.kernels), never a result of
/// one. A text, a line for each product:
///   mindpipe-products 1
///   gpu NVIDIA H200
///   library 130100
///   forward bf16 bf16 gelu_bias_before 8192 768 3072 : 0123456789abcdef ... (eight words)
namespace mindpipe::cuda {

/// cublasLtMatmulAlgo_t, which may be stored and given back to the same version of the library.
using AlgorithmWords = std::array<std::uint64_t, 8>;

struct TunedTable {
  std::string gpu;           ///< the name that cudaGetDeviceProperties gives
  std::int64_t library = 0;  ///< cublasLtGetVersion()
  std::map<ProductKey, AlgorithmWords> algorithms;
  const AlgorithmWords* find(const ProductKey& key) const;
};
std::string to_string(const TunedTable& table);
/// Understands a table, or says what is wrong with which line of `file`.
TunedTable read_tuned_table(const std::string& text, const std::string& file);
/// Refuses a table that was made on another GPU, with another version of the library, or for products on
/// another number of multiprocessors (ProductKey::processors).
void require_fit(const TunedTable& table, const std::string& file, const std::string& gpu,
                 std::int64_t library, int processors);

}  // namespace mindpipe::cuda
