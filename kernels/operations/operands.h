#pragma once
#include "core/tensor.h"

/// What the checks of all operations share. Each operation has one struct of operands, in this folder: its
/// formula, what may be none (what has a default), and a method that refuses operands that do not fit:
/// `check()`, which is called before the operation runs, or `checked()`, which tells kernels what it finds.
namespace mindpipe {

/// Where the kernel for a dtype stands among those of one operation: f64, f32, bf16.
inline int dtype_index(DType dtype) {
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
/// Refuses an operand with another number of elements, or another dtype.
inline void require(const Tensor& t, std::int64_t count, DType dtype, const char* operation,
                    const char* name) {
  require_count(t, count, operation, name);
  require_dtype(t, dtype, operation, name);
}

/// Which rows of whole sequences a tensor [samples, rows, cols] holds: [first, first + rows) of `whole`. A
/// shard of a row holds its columns from `first_col` on of `whole_cols`; 0: it has whole rows.
struct SequencePart {
  std::int64_t samples = 0, rows = 0, first = 0, whole = 0;
  std::int64_t first_col = 0, whole_cols = 0;
};

/// Heads [first, first + count) of a tensor [samples, rows, all heads, head width].
struct Heads {
  Tensor data;
  int first = 0, count = 0;
};

}  // namespace mindpipe
