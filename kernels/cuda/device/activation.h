#pragma once
#include "cuda/device/device_function.h"
#include "operations/calls.h"

/// What follows the sums of a product that the library cannot fuse. Formulas as in cpu/simd/activation.h.
namespace mindpipe::cuda {

MINDPIPE_DEVICE float exponential_of(float x) { return expf(x); }
MINDPIPE_DEVICE double exponential_of(double x) { return exp(x); }

MINDPIPE_DEVICE float erfc_of(float x) { return erfcf(x); }
MINDPIPE_DEVICE double erfc_of(double x) { return erfc(x); }

/// 1 / (1 + exp(-x))
template <class A>
MINDPIPE_DEVICE A sigmoid(A x) {
  return A(1) / (A(1) + exponential_of(-x));
}
/// (1 + erf(x / sqrt(2))) / 2
template <class A>
MINDPIPE_DEVICE A normal_share(A x) {
  return A(0.5) * erfc_of(A(-0.70710678118654752) * x);
}
/// gelu is x / (1 + exp(-u)) = x / 2 (1 + tanh(u / 2)), u = 2 sqrt(2 / pi) (x + 0.044715 x^3)
template <class A>
MINDPIPE_DEVICE A activated(Activation activation, A x) {
  switch (activation) {
    case Activation::relu:
      return x < A(0) ? A(0) : x;
    case Activation::gelu:
      return x * sigmoid(A(1.5957691216057308) * x * (A(1) + A(0.044715) * x * x));
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::gelu_exact:
      return x * normal_share(x);
    case Activation::none:
      break;
  }
  return x;
}
/// s + x s (1 - s) u', and of gelu_exact s + x exp(-x^2 / 2) / sqrt(2 pi); x is held where s is exactly 0 or
/// 1, so that no infinity meets a zero
template <class A>
MINDPIPE_DEVICE A derivative_at(Activation activation, A x) {
  const A bound = activation == Activation::silu ? A(110) : A(30);
  const A held = x < -bound ? -bound : x > bound ? bound : x;
  switch (activation) {
    case Activation::relu:
      return x > A(0) ? A(1) : A(0);
    case Activation::gelu: {
      const A square = held * held, s = sigmoid(A(1.5957691216057308) * held * (A(1) + A(0.044715) * square));
      return s + held * s * (A(1) - s) * A(1.5957691216057308) * (A(1) + A(3 * 0.044715) * square);
    }
    case Activation::silu: {
      const A s = sigmoid(held);
      return s + held * s * (A(1) - s);
    }
    case Activation::gelu_exact:
      return normal_share(held) + A(0.39894228040143268) * held * exponential_of(A(-0.5) * held * held);
    case Activation::none:
      break;
  }
  return A(1);
}

}  // namespace mindpipe::cuda
