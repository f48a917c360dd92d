#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/pixel_window.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. Work is on pixels or windows [first, last) of all samples, or on
/// parts of pixel_chunk windows.
struct PixelKernels {
  void (*neighbours[3])(const PixelCall& call, const void* x, void* y, std::int64_t first, std::int64_t last);
  void (*neighbours_backward[3])(const PixelCall& call, const void* dy, void* dx, std::int64_t first,
                                 std::int64_t last);
  void (*depthwise[3])(const PixelCall& call, const void* x, const void* w, void* y, std::int64_t first,
                       std::int64_t last);
  void (*depthwise_backward_input[3])(const PixelCall& call, const void* dy, const void* w, void* dx,
                                      std::int64_t first, std::int64_t last);
  void (*depthwise_backward_weight[3])(const PixelCall& call, const void* dy, const void* x, void* parts,
                                       std::int64_t first, std::int64_t last);
  void (*largest[3])(const PixelCall& call, const void* x, void* y, std::uint8_t* chosen, std::int64_t first,
                     std::int64_t last);
  void (*largest_backward[3])(const PixelCall& call, const void* dy, const std::uint8_t* chosen, void* dx,
                              std::int64_t first, std::int64_t last);
  void (*mean[3])(const PixelCall& call, const void* x, void* y, std::int64_t first, std::int64_t last);
  void (*mean_backward[3])(const PixelCall& call, const void* dy, void* dx, std::int64_t first,
                           std::int64_t last);
  /// Work is on samples.
  void (*global_mean[3])(const void* x, void* y, std::int64_t pixels, std::int64_t channels,
                         std::int64_t first, std::int64_t last);
  void (*global_mean_backward[3])(const void* dy, void* dx, std::int64_t pixels, std::int64_t channels,
                                  std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(PixelKernels, pixel_kernels)

}  // namespace mindpipe
