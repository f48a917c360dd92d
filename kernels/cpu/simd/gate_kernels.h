#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. Work is on elements or rows [first, last).
struct GateKernels {
  void (*gate[3])(const void* both, void* y, std::int64_t cols, std::int64_t first, std::int64_t last);
  void (*gate_backward[3])(const void* dy, const void* both, void* dboth, std::int64_t cols,
                           std::int64_t first, std::int64_t last);
  /// By dtype f32, bf16; y may be x.
  void (*activation[2])(Activation activation, const void* x, void* y, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(GateKernels, gate_kernels)

}  // namespace mindpipe
