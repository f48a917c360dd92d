#pragma once
#include <cstdint>

#include "cpu/isa.h"

namespace mindpipe {

/// Functions of one f32 that kernels are made of: what cpu/simd/math.h and activation.h have.
enum class RealFunction : std::uint8_t {
  exp,
  exp_below_zero,
  power_of_2,
  log,
  erf,
  normal_share,
  sigmoid,
  rest_of_sigmoid,
  relu,
  gelu,
  gelu_exact,
  silu,
  relu_slope,
  gelu_slope,
  gelu_exact_slope,
  silu_slope,
};
inline constexpr int real_functions = 16;

struct FunctionKernels {
  void (*apply)(RealFunction function, const float* x, float* y, std::int64_t count);
};
MINDPIPE_DECLARE_KERNELS(FunctionKernels, function_kernels)

}  // namespace mindpipe
