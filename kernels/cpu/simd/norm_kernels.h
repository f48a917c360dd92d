#pragma once
#include <cstdint>

#include "cpu/isa.h"
#include "operations/calls.h"

namespace mindpipe {

/// Arrays are by dtype: f64, f32, bf16. Work is on rows [first, last), or columns in sums over rows.
struct NormKernels {
  void (*forward[3])(bool rms, const void* x, const void* gain, const void* offset, double epsilon,
                     void* statistics, void* y, std::int64_t cols, std::int64_t first, std::int64_t last);
  void (*backward_input[3])(bool rms, const void* dy, const void* x, const void* gain, const void* statistics,
                            const void* residual, void* dx, std::int64_t cols, std::int64_t first,
                            std::int64_t last);
  void (*backward_parameters[3])(const void* dy, const void* x, const void* statistics, void* dgain,
                                 void* doffset, const RowParts& shape, std::int64_t first, std::int64_t last);
  void (*column_sums[3])(const void* dy, void* db, const RowParts& shape, std::int64_t first,
                         std::int64_t last);
  /// Heads [head, head + count) of [rows, heads, width]; tables are [row % table_rows, width / 2].
  void (*rotary[3])(void* data, const double* cosines, const double* sines, std::int64_t table_rows,
                    std::int64_t heads, std::int64_t head, std::int64_t count, std::int64_t width,
                    bool inverse, std::int64_t first, std::int64_t last);
};
MINDPIPE_DECLARE_KERNELS(NormKernels, norm_kernels)

}  // namespace mindpipe
