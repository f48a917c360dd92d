#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Work is on elements [first, last).
struct IntegerKernels {
  /// Returns how many elements are beyond what may be added.
  std::int64_t (*add_as)(float* gradient, std::int64_t* totals, std::int64_t first, std::int64_t last);
  /// gradient = factor totals, totals = 0
  void (*from)(std::int64_t* totals, float factor, float* gradient, std::int64_t first, std::int64_t last);
  /// i64, as one more dtype of ElementwiseKernels::add
  void (*add)(const void* a, const void* b, void* sum, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(IntegerKernels, integer_kernels)

}  // namespace mindpipe
