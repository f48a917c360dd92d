#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/pixel_window.h"

namespace mindpipe {

/// What a batch norm reads of each column: statistics [3, columns], gain and offset.
struct ColumnNorm {
  const void *statistics, *gain, *offset;
  std::int64_t rows, cols;
  bool relu;
};

/// Arrays are by dtype: f64, f32, bf16. Work is on rows, on parts of pixel_chunk rows, or on columns.
struct BatchNormKernels {
  void (*moments[3])(const void* x, void* parts, std::int64_t rows, std::int64_t cols, std::int64_t first,
                     std::int64_t last);
  /// By dtype of the parts: f64, f32.
  void (*statistics[2])(const void* parts, std::int64_t rows, double epsilon, void* statistics,
                        std::int64_t cols, std::int64_t first, std::int64_t last);
  void (*forward[3])(const ColumnNorm& norm, const void* x, void* y, std::int64_t first, std::int64_t last);
  void (*backward_sums[3])(const ColumnNorm& norm, const void* dy, const void* x, void* parts,
                           std::int64_t first, std::int64_t last);
  void (*backward_input[3])(const ColumnNorm& norm, const void* dy, const void* x, const void* sums,
                            const void* residual, void* dx, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(BatchNormKernels, batch_norm_kernels)

}  // namespace mindpipe
