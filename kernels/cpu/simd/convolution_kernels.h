#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. Work is on rows [first, last) of all samples, or on columns in sums
/// over rows.
struct ConvolutionKernels {
  /// y[r] = sum of w[t] x[r - before + t]; rows of x beyond the lengths are zeros.
  void (*depthwise[3])(const void* x, const void* w, const TapCall& call, void* y, std::int64_t first,
                       std::int64_t last);
  /// The taps from the last to the first, and rows of dx beyond the lengths are zeros.
  void (*depthwise_backward_input[3])(const void* dy, const void* w, const TapCall& call, void* dx,
                                      std::int64_t first, std::int64_t last);
  void (*depthwise_backward_weight[3])(const void* dy, const void* x, const TapCall& call, void* dw,
                                       std::int64_t first, std::int64_t last);
  /// dx[i] = sum of dy[i + before - t, t] over taps.
  void (*neighbour_sums[3])(const void* dy, const TapCall& call, void* dx, std::int64_t first,
                            std::int64_t last);
  /// Softmax over taps, channels [first, last) of y; and its gradient for columns [first, last).
  void (*share_taps[3])(const void* w, const SharedTaps& call, void* y, std::int64_t first,
                        std::int64_t last);
  void (*share_taps_backward[3])(const void* dy, const void* w, const SharedTaps& call, void* dw,
                                 std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(ConvolutionKernels, convolution_kernels)

}  // namespace mindpipe
