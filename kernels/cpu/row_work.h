#pragma once
#include <type_traits>

#include "cpu/isa.h"
#include "cpu/simd/elementwise_kernels.h"
#include "cpu/simd/norm_kernels.h"
#include "operations/rows.h"

namespace mindpipe {

/// A checked sum with a branch, to be run on any range of its rows: alone, or row by row with a norm.
struct ResidualRows {
  std::remove_extent_t<decltype(ElementwiseKernels::residual)> kernel;
  const void *x, *branch, *bias;
  MaskRows mask;
  void* y;
  void operator()(std::int64_t first, std::int64_t last) const {
    kernel(x, branch, bias, mask, y, first, last);
  }
};
/// A checked norm, to be run on any range of its rows.
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

ResidualRows residual_rows(Isa isa, const ResidualOperands& operands);
NormRows norm_rows(Isa isa, const NormOperands& operands);

}  // namespace mindpipe
