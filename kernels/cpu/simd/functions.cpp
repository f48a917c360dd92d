#include "cpu/simd/function_kernels.h"

#include "cpu/simd/activation.h"
#include "cpu/simd/rows.h"

/// Functions of one number by themselves, so that all their arguments can be tried.
namespace mindpipe::MINDPIPE_ISA {
namespace {

template <class Function>
void each(const float* x, float* y, std::int64_t count, const Function& function) {
  for_lanes<float>(count,
                   [&](std::int64_t i, auto ending) { write(y + i, function(read(x + i, ending)), ending); });
}

template <Activation activation>
void activated(const float* x, float* y, std::int64_t count) {
  each(x, y, count, [](Vector v) { return activate(activation, v); });
}
template <Activation activation>
void slopes(const float* x, float* y, std::int64_t count) {
  each(x, y, count, [](Vector v) { return activation_derivative(activation, v); });
}

void apply(RealFunction function, const float* x, float* y, std::int64_t count) {
  switch (function) {
    case RealFunction::exp:
      return each(x, y, count, [](Vector v) { return exp(v); });
    case RealFunction::exp_below_zero:
      return each(x, y, count, [](Vector v) { return exp_below_zero(v); });
    case RealFunction::power_of_2:
      return each(x, y, count, [](Vector v) { return power_of_2(v); });
    case RealFunction::log:
      return each(x, y, count, [](Vector v) { return log(v); });
    case RealFunction::erf:
      return each(x, y, count, [](Vector v) { return erf(v); });
    case RealFunction::normal_share:
      return each(x, y, count, [](Vector v) { return normal_share(v); });
    case RealFunction::sigmoid:
      return each(x, y, count, [](Vector v) { return sigmoid(v).of; });
    case RealFunction::rest_of_sigmoid:
      return each(x, y, count, [](Vector v) { return sigmoid(v).rest; });
    case RealFunction::relu:
      return activated<Activation::relu>(x, y, count);
    case RealFunction::gelu:
      return activated<Activation::gelu>(x, y, count);
    case RealFunction::gelu_exact:
      return activated<Activation::gelu_exact>(x, y, count);
    case RealFunction::silu:
      return activated<Activation::silu>(x, y, count);
    case RealFunction::relu_slope:
      return slopes<Activation::relu>(x, y, count);
    case RealFunction::gelu_slope:
      return slopes<Activation::gelu>(x, y, count);
    case RealFunction::gelu_exact_slope:
      return slopes<Activation::gelu_exact>(x, y, count);
    case RealFunction::silu_slope:
      return slopes<Activation::silu>(x, y, count);
  }
}

}  // namespace

const FunctionKernels function_kernels = {apply};

}  // namespace mindpipe::MINDPIPE_ISA
