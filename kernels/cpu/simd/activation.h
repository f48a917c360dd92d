#pragma once
#include "cpu/products.h"
#include "cpu/simd/math.h"

/// Activations and their derivatives on sixteen floats.
namespace mindpipe::MINDPIPE_ISA {

namespace detail {
constexpr float gelu_cube = 0.044715f, gelu_slope = 1.59576912f;  // 2 sqrt(2 / pi)
/// u / log(2), u = 2 sqrt(2/pi) (x + 0.044715 x^3)
MINDPIPE_INLINE Vector gelu_inside(Vector x, Vector square) {
  constexpr float slope = gelu_slope * log2_of_e;
  return x * multiply_add(square, broadcast(slope * gelu_cube), broadcast(slope));
}
}  // namespace detail

/// x / 2 (1 + tanh(u / 2)) = x s, s = 1 / (1 + exp(-u))
MINDPIPE_INLINE Vector gelu(Vector x) { return x * sigmoid_of_log2(detail::gelu_inside(x, x * x)).of; }
/// s + x s (1 - s) u'; beyond 30 it is exactly 0 or 1
MINDPIPE_INLINE Vector gelu_derivative(Vector x) {
  x = max(broadcast(-30.0f), min(broadcast(30.0f), x));
  const Vector square = x * x,
               slope = multiply_add(square, broadcast(3 * detail::gelu_slope * detail::gelu_cube),
                                    broadcast(detail::gelu_slope));
  const Sigmoid<Vector> s = sigmoid_of_log2(detail::gelu_inside(x, square));
  return multiply_add(x * slope, s.of * s.rest, s.of);
}
/// x s, s = 1 / (1 + exp(-x))
MINDPIPE_INLINE Vector silu(Vector x) { return x * sigmoid(x).of; }
/// s + x s (1 - s); beyond 110 it is exactly 0 or 1
MINDPIPE_INLINE Vector silu_derivative(Vector x) {
  x = max(broadcast(-110.0f), min(broadcast(110.0f), x));
  const Sigmoid<Vector> s = sigmoid(x);
  return multiply_add(x, s.of * s.rest, s.of);
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
