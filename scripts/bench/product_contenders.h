#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench_blocks.h"
#include "cpu/products.h"

/// The programs that products_bench compares, over the same operands.
namespace mindpipe::bench {

/// A product of a layer from k to m values a row: "forward", "input" (its gradient) or "weight" (its
/// gradient, added).
struct Shape3 {
  const char* form;
  std::int64_t n, k, m;
  std::int64_t weights = 1;  ///< weights that are met in turn
  double operations() const {
    return 2.0 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(m);
  }
};
std::string name_of(const Shape3& shape);

/// So many bf16 weights that no cache holds them all, as in generation, where each token reads all of a
/// model's: as many bytes as GPT-2 124M has.
std::int64_t weights_beyond_caches(std::int64_t k, std::int64_t m);

/// Operands of one shape in f32 and bf16: x [n,k], weights w [m,k], y [n,m].
struct Operands {
  std::int64_t weight_size;
  Block<float> x, w, y;
  Block<std::uint16_t> x_half, w_half, y_half;
  explicit Operands(const Shape3& shape);
};

/// Our kernels for one set of instructions, with a workspace for products of any size.
struct Ours {
  Isa isa;
  const ProductKernels &kernels = choose_product_kernels(isa, false),
                       &half_kernels = choose_product_kernels(isa, true);
  Block<char> workspace{static_cast<std::int64_t>(
      std::max(kernels.workspace_bytes(1 << 20, 1 << 20), half_kernels.workspace_bytes(1 << 20, 1 << 20)))};
  explicit Ours(const std::string& instructions) : isa(choose_isa(instructions)) {}
};

/// `run` multiplies by one of the weights, by its number.
struct Contender {
  std::string name;
  std::function<void(std::int64_t weight)> run;
  std::vector<double> rates;
};
/// Ours, OpenBLAS and oneDNN in f32, then ours and oneDNN in bf16, each on one thread.
std::vector<Contender> contenders_for(const Shape3& shape, const Operands& operands, const Ours& ours);

}  // namespace mindpipe::bench
