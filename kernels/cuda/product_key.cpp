#include "cuda/product_key.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace mindpipe::cuda {
namespace {

constexpr std::array kind_names{"forward", "backward_input", "backward_weight", "first_weight"};
constexpr std::array epilogue_names{"none",         "bias",      "relu",        "relu_bias",
                                    "gelu",         "gelu_bias", "gelu_before", "gelu_bias_before",
                                    "gelu_backward"};
constexpr std::array dtypes{DType::f64, DType::f32, DType::bf16};

template <class Names>
int find(const Names& names, const std::string& word) {
  const auto at = std::find(names.begin(), names.end(), word);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

std::optional<DType> dtype_of(const std::string& word) {
  for (DType dtype : dtypes)
    if (word == name_of(dtype)) return dtype;
  return {};
}

ColumnMatrix matrix(DType dtype, std::int64_t rows, std::int64_t cols, bool transposed) {
  return {dtype, rows, cols, rows, transposed, alignment_of(rows * cols, dtype)};
}

/// The library reads and writes `before` in eights of 16-byte aligned rows.
bool fits_before(std::optional<DType> before, DType result, std::int64_t rows, std::int64_t cols) {
  return before == result && cols % 8 == 0 && alignment_of(rows * cols, result) == 16;
}

std::optional<Epilogue> forward_epilogue(const ProductCall& c) {
  const bool bias = c.bias.has_value(), before = c.before.has_value();
  if (bias && *c.bias != c.result) return {};
  if (before && (c.activation != Activation::gelu || !fits_before(c.before, c.result, c.n, c.m))) return {};
  if (c.activation == Activation::none) return bias ? Epilogue::bias : Epilogue::none;
  if (c.activation == Activation::relu) return bias ? Epilogue::relu_bias : Epilogue::relu;
  if (c.activation != Activation::gelu) return {};
  if (before) return bias ? Epilogue::gelu_bias_before : Epilogue::gelu_before;
  return bias ? Epilogue::gelu_bias : Epilogue::gelu;
}

}  // namespace

bool has_bias(Epilogue e) {
  return e == Epilogue::bias || e == Epilogue::relu_bias || e == Epilogue::gelu_bias ||
         e == Epilogue::gelu_bias_before;
}
bool has_before(Epilogue e) {
  return e == Epilogue::gelu_before || e == Epilogue::gelu_bias_before || e == Epilogue::gelu_backward;
}

std::string to_string(const ProductKey& key) {
  return fmt::format("{} {} {} {} {} {} {}{}", kind_names[static_cast<std::size_t>(key.kind)],
                     name_of(key.operands), name_of(key.result),
                     epilogue_names[static_cast<std::size_t>(key.epilogue)], key.n, key.k, key.m,
                     key.processors == 0 ? "" : fmt::format(" on {}", key.processors));
}

std::optional<ProductKey> product_key_of(const std::string& text) {
  std::istringstream words(text);
  std::string kind, operands, result, epilogue, on, rest;
  ProductKey key;
  if (!(words >> kind >> operands >> result >> epilogue >> key.n >> key.k >> key.m)) return {};
  if (words >> on && (on != "on" || !(words >> key.processors) || key.processors < 1 || words >> rest))
    return {};
  const int kind_at = find(kind_names, kind), epilogue_at = find(epilogue_names, epilogue);
  const auto a = dtype_of(operands), b = dtype_of(result);
  if (kind_at < 0 || epilogue_at < 0 || !a || !b || std::min({key.n, key.k, key.m}) < 1) return {};
  key.kind = static_cast<ProductKind>(kind_at);
  key.operands = *a;
  key.result = *b;
  key.epilogue = static_cast<Epilogue>(epilogue_at);
  return key;
}

int alignment_of(std::int64_t elements, DType dtype) {
  const std::int64_t bytes = elements * static_cast<std::int64_t>(bytes_of(dtype));
  int alignment = 16;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

ProductLayout layout_of(const ProductKey& key) {
  const auto [kind, type, result, epilogue, n, k, m, processors] = key;
  if (kind == ProductKind::forward)
    return {matrix(type, k, m, true), matrix(type, k, n, false), matrix(result, m, n, false), false};
  if (kind == ProductKind::backward_input)
    return {matrix(type, k, m, false), matrix(type, m, n, false), matrix(result, k, n, false), false};
  return {matrix(type, k, n, false), matrix(type, m, n, true), matrix(result, k, m, false),
          kind == ProductKind::backward_weight};
}

std::optional<Epilogue> epilogue_of(const ProductCall& c) {
  if (c.operands == DType::f64 && (c.activation != Activation::none || c.bias))
    return {};  // no more than sums in f64
  if (c.kind == ProductKind::forward) return forward_epilogue(c);
  if (c.activation == Activation::none) return Epilogue::none;
  if (c.activation == Activation::gelu && fits_before(c.before, c.result, c.n, c.k))
    return Epilogue::gelu_backward;
  return {};
}

std::optional<ProductKey> fused_key(const ProductCall& c, int processors) {
  const auto epilogue = epilogue_of(c);
  if (!epilogue) return {};
  return ProductKey{c.kind, c.operands, c.result, *epilogue, c.n, c.k, c.m, processors};
}

ProductKey sums_key(const ProductCall& c, std::int64_t rows, int processors) {
  return {c.kind, c.operands, wide(c.operands), Epilogue::none, rows, c.k, c.m, processors};
}

std::int64_t rows_at_once(std::int64_t cols, std::size_t bytes) {
  const std::int64_t rows = static_cast<std::int64_t>(bytes / sizeof(float)) / cols;
  const std::int64_t whole = rows >= 64 ? 64 : rows >= 8 ? 8 : 1;
  return std::max<std::int64_t>(rows / whole * whole, 1);
}

std::int64_t rows_at_once(const ProductCall& c, std::size_t bytes) {
  if (c.result != DType::bf16) return c.n;
  return std::min(c.n, rows_at_once(c.kind == ProductKind::forward ? c.m : c.k, bytes));
}

}  // namespace mindpipe::cuda
