#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16; of updates, by dtype of the value, which stands beside f32 masters
/// (f64 beside f64) and may be null. Work is on elements or chunks [first, last).
struct UpdateKernels {
  void (*sum_squares[3])(const void* x, std::int64_t count, std::int64_t chunk, double* sums,
                         std::int64_t first, std::int64_t last);
  std::int64_t (*count_not_finite[3])(const void* x, std::int64_t first, std::int64_t last);
  std::uint64_t (*hash[3])(const void* x, std::int64_t first, std::int64_t last);
  void (*adamw[3])(const AdamWStep& step, const double* decision, const void* gradient, void* master, void* m,
                   void* v, void* value, std::int64_t first, std::int64_t last);
  void (*sgd[3])(const SgdStep& step, const double* decision, const void* gradient, void* master,
                 void* velocity, void* value, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(UpdateKernels, update_kernels)

}  // namespace mindpipe
