#pragma once
#include "operations/calls.h"
#include "operations/operands.h"

/// Rows picked out of an activation, and put back. rows[s, i] i32 [samples, picked] is a row of sample s's
/// whole sequence; what is no row, as -1, stands for none.
namespace mindpipe {

inline PickCall pick_call(const Tensor& whole, const Tensor& rows, const Tensor& picked,
                          const char* operation) {
  const Shape &shape = whole.shape, &list = rows.shape;
  MP_CHECK(shape.rank == 3 && list.rank == 2 && list[0] == shape[0],
           "{}: {} and rows {} are not [samples, rows, cols] and [samples, picked]", operation,
           to_string(shape), to_string(list));
  require_dtype(rows, DType::i32, operation, "rows");
  require(picked, list.count() * shape[2], whole.dtype, operation, "what is picked");
  dtype_index(whole.dtype);
  return {shape[0], shape[1], shape[2], list[1], 0};
}

/// y[s, i] = x[s, rows[s, i]], zeros where that is no row. x [samples, rows, cols], y [samples, picked,
/// cols].
struct PickRowsOperands {
  Tensor x, rows, y;

  PickCall checked() const { return pick_call(x, rows, y, "pick_rows"); }
};

/// dx[s, r] = the sum of dy[s, i] over all i, in order, with rows[s, i] = first + r: zeros where there is
/// none. dx [samples, rows, cols] begins at row `first` of the whole sequences.
struct PutRowsOperands {
  Tensor dy, rows;
  std::int64_t first = 0;
  Tensor dx;

  PickCall checked() const {
    PickCall call = pick_call(dx, rows, dy, "put_rows");
    call.first = first;
    return call;
  }
};

}  // namespace mindpipe
