#pragma once
#include "backend.h"
#include "operands.h"

/// Checks the operands of Backend's products, whichever device they are on, and says what is asked.
namespace mindpipe {

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
/// f32 or the dtype of the operands.
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

inline ProductCall linear_call(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                               const Tensor& before, const Tensor& y) {
  const std::int64_t n = x.rows(), k = x.cols(), m = w.rows();
  slot(x.dtype);
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

inline ProductCall linear_backward_input_call(const Tensor& dy, const Tensor& w, Activation activation,
                                              const Tensor& before, const Tensor& dx) {
  const std::int64_t n = dy.rows(), m = dy.cols(), k = w.cols();
  const bool activated = activation != Activation::none;
  slot(dy.dtype);
  require_operand(w, m, k, dy.dtype, "linear_backward_input", "w");
  require_result(dx, n, k, dy.dtype, "linear_backward_input", "dx");
  if (activated) require_result(before, n, k, dy.dtype, "linear_backward_input", "before");
  return {ProductCall::Kind::backward_input,           dy.dtype, dx.dtype, activation, {},
          activated ? dtype_of(before) : std::nullopt, n,        k,        m};
}

inline ProductCall linear_backward_weight_call(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  const std::int64_t n = dy.rows(), m = dy.cols(), k = x.cols();
  slot(dy.dtype);
  require_operand(x, n, k, dy.dtype, "linear_backward_weight", "x");
  require_operand(dw, m, k, wide(dy.dtype), "linear_backward_weight", "dw");
  return {ProductCall::Kind::backward_weight, dy.dtype, dw.dtype, Activation::none, {}, {}, n, k, m};
}

}  // namespace mindpipe
