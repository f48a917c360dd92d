#pragma once
#include <compare>
#include <optional>
#include <string>

#include "backend.h"

/// What decides which algorithm computes a product, and how cuBLASLt is told of it; tested without a GPU.
namespace mindpipe::cuda {

using ProductKind = ProductCall::Kind;

/// What happens to f32 sums before they are rounded. gelu_backward reads `before`, the others write it.
enum class Epilogue : std::uint8_t {
  none,
  bias,
  relu,
  relu_bias,
  gelu,
  gelu_bias,
  gelu_before,
  gelu_bias_before,
  gelu_backward
};
bool has_bias(Epilogue epilogue);
bool has_before(Epilogue epilogue);

/// n rows (tokens), k inputs, m outputs, as in operations/products.h. Everything that chooses an algorithm is
/// a function of this and the library's version.
struct ProductKey {
  ProductKind kind = ProductKind::forward;
  DType operands = DType::bf16, result = DType::bf16;
  Epilogue epilogue = Epilogue::none;
  std::int64_t n = 0, k = 0, m = 0;
  int processors = 0;  ///< multiprocessors that it is computed on; 0: all that the GPU has
  auto operator<=>(const ProductKey&) const = default;
};
/// "forward bf16 bf16 gelu_bias_before 8192 768 3072", where some multiprocessors are left to others with "
/// on 116" behind it
std::string to_string(const ProductKey& key);
/// The key that to_string wrote, or nothing.
std::optional<ProductKey> product_key_of(const std::string& text);

/// A matrix as cuBLASLt sees it: column after column, `leading` elements from one to the next.
struct ColumnMatrix {
  DType dtype = DType::bf16;
  std::int64_t rows = 0, cols = 0, leading = 0;
  bool transposed = false;
  int alignment = 0;  ///< bytes that its address is a multiple of, wherever the operand lies
};
/// d = epilogue(op(a) op(b)), or d += op(a) op(b). Row-major [rows, cols] is column-major [cols, rows], so
/// every product is computed transposed:
///   forward         y^T [m,n] = w x^T        a = w, b = x
///   backward_input  dx^T [k,n] = w^T dy^T    a = w, b = dy
///   backward_weight dw^T [k,m] += x^T dy     a = x, b = dy; first_weight: = x^T dy
/// The bias has d.rows elements; `before` is laid out as d.
struct ProductLayout {
  ColumnMatrix a, b, d;
  bool accumulate = false;
};
ProductLayout layout_of(const ProductKey& key);

/// The widest alignment, 16 bytes at most, that a contiguous operand of `elements` has as any shard of
/// a tensor that begins at an aligned address: a function of its size, so that a shard's algorithm does not
/// depend on where a layout puts it.
int alignment_of(std::int64_t elements, DType dtype);

/// What the library is asked to fuse, or nothing: then sums in f32 and a kernel of our own.
std::optional<Epilogue> epilogue_of(const ProductCall& call);
/// The product with that epilogue, on so many multiprocessors (ProductKey::processors).
std::optional<ProductKey> fused_key(const ProductCall& call, int processors);
/// The sums of `rows` of its rows alone, in f32 (f64 beside f64).
ProductKey sums_key(const ProductCall& call, std::int64_t rows, int processors);

/// Rows whose sums fit into `bytes` of f32, a multiple of 64 or of 8 where that is possible, so that each run
/// of rows is aligned as its size says: how a product is cut whose sums need another pass.
std::int64_t rows_at_once(std::int64_t cols, std::size_t bytes);
/// How many rows are summed at once: all where the result can hold the sums itself.
std::int64_t rows_at_once(const ProductCall& call, std::size_t bytes);

}  // namespace mindpipe::cuda
