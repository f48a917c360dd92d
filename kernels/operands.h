#pragma once
#include "core/tensor.h"

namespace mindpipe {

/// Kernels of one operation stand in an array by dtype: f64, f32, bf16.
inline int slot(DType dtype) {
  MP_CHECK(dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16, "no arithmetic on {}",
           name_of(dtype));
  return dtype == DType::f64 ? 0 : dtype == DType::f32 ? 1 : 2;
}

/// The dtype of statistics and parameter gradients beside operands of `dtype`.
inline DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

inline void require_dtype(const Tensor& t, DType dtype, const char* operation, const char* name) {
  MP_CHECK(t.dtype == dtype, "{}: {} is {} ({} is needed)", operation, name, name_of(t.dtype),
           name_of(dtype));
}
inline void require_count(const Tensor& t, std::int64_t count, const char* operation, const char* name) {
  MP_CHECK(t.count() == count, "{}: {} is {} ({} elements are needed)", operation, name, to_string(t.shape),
           count);
}
/// An operand with this many elements of this dtype.
inline void require(const Tensor& t, std::int64_t count, DType dtype, const char* operation,
                    const char* name) {
  require_count(t, count, operation, name);
  require_dtype(t, dtype, operation, name);
}

/// What sums over rows need to know of [samples, rows, cols]; a matrix is one sample.
struct SampleRows {
  std::int64_t samples, rows, cols;
};
inline SampleRows sample_rows(const Tensor& t, const char* operation) {
  MP_CHECK(t.shape.rank == 2 || t.shape.rank == 3, "{}: {} is neither [samples, rows, cols] nor a matrix",
           operation, to_string(t.shape));
  if (t.shape.rank == 2) return {1, t.shape[0], t.shape[1]};
  return {t.shape[0], t.shape[1], t.shape[2]};
}

}  // namespace mindpipe
