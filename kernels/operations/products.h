#pragma once
#include <compare>
#include <optional>

#include "operations/calls.h"
#include "operations/operands.h"

/// The three products of a linear layer. Letters: n rows (tokens), k inputs, m outputs.
namespace mindpipe {

/// One of the three products, by what may decide how it is computed.
struct ProductCall {
  /// first_weight: a backward_weight that writes the gradient instead of adding to it.
  enum class Kind : std::uint8_t { forward, backward_input, backward_weight, first_weight };
  Kind kind = Kind::forward;
  DType operands = DType::f32, result = DType::f32;
  Activation activation = Activation::none;
  std::optional<DType> bias, before;  ///< types of the bias and of `before`, where there are any
  std::int64_t n = 0, k = 0, m = 0;   ///< rows, inputs, outputs
  auto operator<=>(const ProductCall&) const = default;
};

inline void require_matrix(const Tensor& t, std::int64_t rows, std::int64_t cols, const char* operation,
                           const char* name) {
  MP_CHECK(t.data != nullptr && t.rows() == rows && t.cols() == cols, "{}: {} is {} ([{}, {}] is needed)",
           operation, name, to_string(t.shape), rows, cols);
}
inline void require_operand(const Tensor& t, std::int64_t rows, std::int64_t cols, DType dtype,
                            const char* operation, const char* name) {
  require_matrix(t, rows, cols, operation, name);
  require_dtype(t, dtype, operation, name);
}
/// Refuses a dtype that is neither f32 nor that of the operands.
inline void require_result_dtype(const Tensor& t, DType operands, const char* operation, const char* name) {
  MP_CHECK(t.dtype == wide(operands) || t.dtype == operands, "{}: {} is {} beside {} operands", operation,
           name, name_of(t.dtype), name_of(operands));
}
inline void require_result(const Tensor& t, std::int64_t rows, std::int64_t cols, DType operands,
                           const char* operation, const char* name) {
  require_matrix(t, rows, cols, operation, name);
  require_result_dtype(t, operands, operation, name);
}
inline std::optional<DType> dtype_of(const Tensor& t) { return t ? std::optional(t.dtype) : std::nullopt; }

/// y[n,m] = activation(x[n,k] w[m,k]^T + bias[m]). With an activation, `before`[n,m] (dtype of y), unless
/// none, receives what went into it. Sum, bias and activation stay in f32; y is rounded once. The activation
/// is of the f32 value. y may be f32 for bf16 operands.
struct LinearOperands {
  Tensor x, w, bias = {};
  Activation activation = Activation::none;
  Tensor before = {}, y;

  ProductCall checked() const {
    const std::int64_t n = x.rows(), k = x.cols(), m = w.rows();
    dtype_index(x.dtype);
    require_operand(w, m, k, x.dtype, "linear", "w");
    require_result(y, n, m, x.dtype, "linear", "y");
    if (bias) {
      require_count(bias, m, "linear", "bias");
      require_result_dtype(bias, x.dtype, "linear", "bias");
    }
    if (before) require_operand(before, n, m, y.dtype, "linear", "before");
    return {ProductCall::Kind::forward, x.dtype, y.dtype, activation, dtype_of(bias),
            dtype_of(before),           n,       k,       m};
  }
};

/// dx[n,k] = (dy[n,m] w[m,k]) * activation'(before[n,k]); `before` is read only if there is an activation.
struct LinearBackwardInputOperands {
  Tensor dy, w;
  Activation activation = Activation::none;
  Tensor before = {}, dx;

  ProductCall checked() const {
    const std::int64_t n = dy.rows(), m = dy.cols(), k = w.cols();
    const bool activated = activation != Activation::none;
    dtype_index(dy.dtype);
    require_operand(w, m, k, dy.dtype, "linear_backward_input", "w");
    require_result(dx, n, k, dy.dtype, "linear_backward_input", "dx");
    if (activated) require_result(before, n, k, dy.dtype, "linear_backward_input", "before");
    return {ProductCall::Kind::backward_input,           dy.dtype, dx.dtype, activation, {},
            activated ? dtype_of(before) : std::nullopt, n,        k,        m};
  }
};

/// dw[m,k] += dy[n,m]^T x[n,k]; the first of several writes dw, whatever is there.
struct LinearBackwardWeightOperands {
  Tensor dy, x, dw;
  bool is_first = false;

  ProductCall checked() const {
    const std::int64_t n = dy.rows(), m = dy.cols(), k = x.cols();
    dtype_index(dy.dtype);
    require_operand(x, n, k, dy.dtype, "linear_backward_weight", "x");
    require_operand(dw, m, k, wide(dy.dtype), "linear_backward_weight", "dw");
    return {is_first ? ProductCall::Kind::first_weight : ProductCall::Kind::backward_weight,
            dy.dtype,
            dw.dtype,
            Activation::none,
            {},
            {},
            n,
            k,
            m};
  }
};

}  // namespace mindpipe
