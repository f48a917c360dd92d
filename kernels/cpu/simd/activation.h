#pragma once
#include "cpu/products.h"
#include "cpu/simd/math.h"

/// Activations and their derivatives on sixteen floats.
namespace mindpipe::MINDPIPE_ISA {

/// 1 / (1 + exp(-x))
MINDPIPE_INLINE Vector sigmoid(Vector x) { return broadcast(1.0f) / (broadcast(1.0f) + exp(negate(x))); }

namespace detail {
constexpr float gelu_slope = 1.59576912f, gelu_cube = 0.044715f;  // 2 sqrt(2 / pi)
}

/// x / 2 (1 + tanh(u / 2)) = x / (1 + exp(-u)), u = 2 sqrt(2/pi) (x + 0.044715 x^3)
MINDPIPE_INLINE Vector gelu(Vector x) {
  const Vector cube = multiply_add(x * x, broadcast(detail::gelu_cube), broadcast(1.0f));
  const Vector u = broadcast(detail::gelu_slope) * x * cube;
  return x / (broadcast(1.0f) + exp(negate(u)));
}
/// s + x s (1 - s) u', s = 1 / (1 + exp(-u)); beyond 30 it is exactly 0 or 1
MINDPIPE_INLINE Vector gelu_derivative(Vector x) {
  x = max(broadcast(-30.0f), min(broadcast(30.0f), x));
  const Vector square = x * x;
  const Vector u =
      broadcast(detail::gelu_slope) * x * multiply_add(square, broadcast(detail::gelu_cube), broadcast(1.0f));
  const Vector s = sigmoid(u);
  const Vector slope =
      broadcast(detail::gelu_slope) * multiply_add(square, broadcast(3 * detail::gelu_cube), broadcast(1.0f));
  return multiply_add(x * slope, s * (broadcast(1.0f) - s), s);
}
/// x / (1 + exp(-x))
MINDPIPE_INLINE Vector silu(Vector x) { return x / (broadcast(1.0f) + exp(negate(x))); }
/// s + x s (1 - s), s = 1 / (1 + exp(-x)); beyond 110 it is exactly 0 or 1
MINDPIPE_INLINE Vector silu_derivative(Vector x) {
  x = max(broadcast(-110.0f), min(broadcast(110.0f), x));
  const Vector s = sigmoid(x);
  return multiply_add(x, s * (broadcast(1.0f) - s), s);
}

/// x / 2 (1 + erf(x / sqrt(2)))
MINDPIPE_INLINE Vector gelu_exact(Vector x) { return x * normal_share(x); }
/// (1 + erf(x / sqrt(2))) / 2 + x exp(-x^2 / 2) / sqrt(2 pi); beyond 30 it is exactly 0 or 1
MINDPIPE_INLINE Vector gelu_exact_derivative(Vector x) {
  x = max(broadcast(-30.0f), min(broadcast(30.0f), x));
  return multiply_add(broadcast(0.398942280f) * x, exp(broadcast(-0.5f) * x * x), normal_share(x));
}

MINDPIPE_INLINE Vector activate(Activation activation, Vector x) {
  if (activation == Activation::relu) return select(less(x, zero()), zero(), x);
  if (activation == Activation::gelu) return gelu(x);
  if (activation == Activation::gelu_exact) return gelu_exact(x);
  return activation == Activation::silu ? silu(x) : x;
}
MINDPIPE_INLINE Vector activation_derivative(Activation activation, Vector x) {
  if (activation == Activation::relu) return select(greater(x, zero()), broadcast(1.0f), zero());
  if (activation == Activation::gelu) return gelu_derivative(x);
  if (activation == Activation::gelu_exact) return gelu_exact_derivative(x);
  return activation == Activation::silu ? silu_derivative(x) : broadcast(1.0f);
}

}  // namespace mindpipe::MINDPIPE_ISA
