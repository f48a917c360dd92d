#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. Work is on elements or rows [first, last).
struct ElementwiseKernels {
  void (*add[3])(const void* a, const void* b, void* sum, std::int64_t first, std::int64_t last);
  void (*multiply[3])(const void* a, const void* b, void* product, std::int64_t first, std::int64_t last);
  void (*accumulate[3])(const void* part, void* total, std::int64_t first, std::int64_t last);
  /// y = x + wide, where wide has the dtype that x is computed in
  void (*add_wide[3])(const void* x, const void* wide, void* y, std::int64_t count);
  void (*convert[3][3])(const void* x, void* y, std::int64_t first, std::int64_t last);  ///< [from][to]
  void (*swiglu[3])(const void* gate_up, void* y, std::int64_t cols, std::int64_t first, std::int64_t last);
  void (*swiglu_backward[3])(const void* dy, const void* gate_up, void* dgate_up, std::int64_t cols,
                             std::int64_t first, std::int64_t last);
  /// By dtype f32, bf16; dx may be dy.
  void (*activation_backward[2])(Activation activation, const void* dy, const void* before, void* dx,
                                 std::int64_t first, std::int64_t last);
  void (*scale[3])(const void* x, double factor, void* y, std::int64_t first, std::int64_t last);
  void (*residual[3])(const void* x, const void* branch, const void* bias, const MaskRows& mask, void* y,
                      std::int64_t first, std::int64_t last);
  void (*dropout[3])(const void* x, const MaskRows& mask, void* y, std::int64_t first, std::int64_t last);
  /// Words 4 block .. of a stream, whole groups of 16 blocks: what dropout draws.
  void (*draw)(const MaskRows& mask, std::uint32_t sample, std::uint64_t block, std::int64_t groups,
               std::uint32_t* words);
};
MINDPIPE_DECLARE_KERNELS(ElementwiseKernels, elementwise_kernels)

}  // namespace mindpipe
