#pragma once
#include <cmath>

#include "operations/calls.h"

/// Activations and their derivatives in f64, for gradient checks. Formulas as in cpu/simd/activation.h.
namespace mindpipe::f64 {

inline constexpr double slope = 1.5957691216057308, cube = 0.044715;  // slope: 2 sqrt(2 / pi)
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// Share of a normal distribution that lies below x.
inline double normal_share(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

inline double activated(Activation activation, double x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  if (activation == Activation::gelu) return x * sigmoid(slope * (x + cube * x * x * x));
  if (activation == Activation::gelu_exact) return x * normal_share(x);
  return activation == Activation::silu ? x * sigmoid(x) : x;
}
inline double derivative(Activation activation, double x) {
  if (activation == Activation::relu) return x > 0 ? 1 : 0;
  if (activation == Activation::gelu) {
    const double s = sigmoid(slope * (x + cube * x * x * x));
    return s + x * s * (1 - s) * slope * (1 + 3 * cube * x * x);
  }
  if (activation == Activation::gelu_exact)
    return normal_share(x) + x * std::exp(-0.5 * x * x) * 0.5 * M_SQRT1_2 * M_2_SQRTPI;
  return activation == Activation::silu ? sigmoid(x) * (1 + x * (1 - sigmoid(x))) : 1;
}

}  // namespace mindpipe::f64
