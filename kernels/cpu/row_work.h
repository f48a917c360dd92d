#pragma once
#include <type_traits>

#include "backend.h"
#include "cpu/isa.h"
#include "cpu/simd/elementwise_kernels.h"
#include "cpu/simd/norm_kernels.h"

namespace mindpipe {

/// A checked call of an operation on rows, to be run on any range of them: alone, or row by row with another
/// one.
struct ResidualRows {
  std::remove_extent_t<decltype(ElementwiseKernels::residual)> kernel;
  const void *x, *branch, *bias;
  MaskRows mask;
  void* y;
  void operator()(std::int64_t first, std::int64_t last) const {
    kernel(x, branch, bias, mask, y, first, last);
  }
};
struct NormRows {
  std::remove_extent_t<decltype(NormKernels::forward)> kernel;
  bool rms;
  const void *x, *gain, *offset;
  double epsilon;
  void *statistics, *y;
  std::int64_t cols;
  void operator()(std::int64_t first, std::int64_t last) const {
    kernel(rms, x, gain, offset, epsilon, statistics, y, cols, first, last);
  }
};

ResidualRows residual_rows(Isa isa, const Tensor& x, const Tensor& branch, const Tensor& bias,
                           const Dropout& dropout, const Window& window, const Tensor& y);
NormRows norm_rows(Isa isa, NormKind kind, const Tensor& x, const Tensor& gain, const Tensor& offset,
                   double epsilon, const Tensor& statistics, const Tensor& y);

}  // namespace mindpipe
