#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Where values of a matrix lie and whether they are f32 or bf16.
struct MatrixView {
  void* data = nullptr;
  bool bf16 = false;
};

/// A factor of a product, element (i, p) with p along the summed extent ("depth"):
/// data[i * stride + p], or data[p * stride + i] where `depth_first`.
struct Factor {
  const void* data = nullptr;
  std::int64_t stride = 0;
  bool depth_first = false, bf16 = false;
};

/// c[i,j] = end(sum over p of a(i,p) b(j,p)), c contiguous [rows, cols]. The sum is a chain of multiply-adds
/// from zero over each block of `depth_block` depths, the blocks added in order in f32, to c's old value
/// where `accumulate`. Then, in f32, by `end`:
///   forward:  z = sum + bias[j]; before = z unless none; c = activation(z)
///   backward: c = sum * activation'(before)
/// and one rounding to c's type. Element (i, j) depends on row i of a, row j of b and the depth alone.
struct Product {
  Factor a, b;
  std::int64_t rows = 0, cols = 0, depth = 0;
  MatrixView c, before = {}, bias = {};
  Activation activation = Activation::none;
  bool backward = false, accumulate = false;
};
inline constexpr int depth_block = 256;

/// One thread's part of a product: rows [first_row, last_row) and columns [first_col, last_col).
struct ProductPart {
  std::int64_t first_row, last_row, first_col, last_col;
};

/// A product engine of one instruction set; product_kernels are those that compute in f32 and widen bf16.
struct ProductKernels {
  int tile_rows, tile_cols;  ///< the register tile
  /// Bytes that `run` needs for a part of `rows` rows, aligned to 64.
  std::size_t (*workspace_bytes)(std::int64_t rows, std::int64_t depth);
  void (*run)(const Product& product, const ProductPart& part, void* workspace);
};
MINDPIPE_DECLARE_KERNELS(ProductKernels, product_kernels)

/// The bf16 engine of processors that multiply pairs of bf16 (Isa::avx512_bf16). Its sum: over each block of
/// 2 * depth_block depths a chain of multiply-adds from zero, two neighbouring depths after one another, the
/// second first; the blocks are added as above. Denormal numbers count as zero in the chains.
namespace avx512 {
extern const ProductKernels pair_kernels;
}

/// The bf16 engine of processors with tiles (Isa::avx512_amx). Its sum: c = 0 or the old value; for each 32
/// depths a chain of multiply-adds from zero over the even ones and one over the odd ones, c += even + odd;
/// denormal numbers count as zero.
namespace avx512 {
extern const ProductKernels amx_kernels;
}

/// The engine that serves products of this kind.
const ProductKernels& choose_product_kernels(Isa isa, bool bf16);

/// What all threads of a product work in.
std::size_t product_workspace(const ProductKernels& kernels, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, int threads);
/// Divides a product among threads, with the same bits; `workspace` holds product_workspace() bytes.
void run_product(const ProductKernels& kernels, const Product& product, int threads, void* workspace);

}  // namespace mindpipe
