#pragma once
#include <algorithm>

#include "operations/calls.h"
#include "operations/operands.h"

/// Gates, activations by themselves, padding of rows and of columns.
namespace mindpipe {

/// y[n,f] = a sigmoid(b), with both[n,2f] = a | b.
struct GateOperands {
  Tensor both, y;

  void check() const { require(both, 2 * y.count(), y.dtype, "gate", "both"); }
};

/// da = dy sigmoid(b), db = dy a sigmoid(b) (1 - sigmoid(b)), with dboth[n,2f] = da | db; dboth may be both.
struct GateBackwardOperands {
  Tensor dy, both, dboth;

  void check() const {
    require(both, 2 * dy.count(), dy.dtype, "gate_backward", "both");
    require(dboth, 2 * dy.count(), dy.dtype, "gate_backward", "dboth");
  }
};

/// y = activation(x): where no product comes before that could take it along; y may be x.
struct ActivationOperands {
  Tensor x;
  Activation activation = Activation::none;
  Tensor y;

  void check() const {
    MP_CHECK(activation != Activation::none, "activation: no activation is named");
    require(y, x.count(), x.dtype, "activation", "y");
  }
};

/// Rows of [samples, rows, cols] of which the first lengths[sample] are no padding.
inline LengthCall length_call(const Tensor& x, const Tensor& lengths, const char* operation) {
  MP_CHECK(x.shape.rank == 3, "{}: {} is not [samples, rows, cols]", operation, to_string(x.shape));
  if (lengths) require(lengths, x.shape[0], DType::i32, operation, "lengths");
  return {x.shape[0], x.shape[1], x.shape[2], lengths.as<std::int32_t>()};
}

/// y[s,r] = x[s,r] where r < lengths[s], else zeros: rows times the padding mask, forward and backward alike;
/// y may be x.
struct ClearPaddingOperands {
  Tensor x, lengths, y;

  LengthCall checked() const {
    require(y, x.count(), x.dtype, "clear_padding", "y");
    MP_CHECK(static_cast<bool>(lengths), "clear_padding: there are no lengths");
    return length_call(x, lengths, "clear_padding");
  }
};

/// y[n,wide] = (zeros | x[n,narrow] | zeros) + sum, without a sum where there is none; x stands from column
/// `first` on; y may be sum.
struct PadColumnsOperands {
  Tensor x, sum = {}, y;
  std::int64_t first = 0;

  void check() const {
    MP_CHECK(first >= 0 && first + x.cols() <= y.cols(),
             "pad_columns: {} columns from {} on do not fit into {}", x.cols(), first, y.cols());
    require(x, y.rows() * x.cols(), y.dtype, "pad_columns", "x");
    if (sum) require(sum, y.count(), y.dtype, "pad_columns", "sum");
  }
};

/// y[n,narrow] = columns of x[n,wide] from `first` on: what pad_columns does, backwards.
struct CutColumnsOperands {
  Tensor x, y;
  std::int64_t first = 0;

  void check() const {
    MP_CHECK(first >= 0 && first + y.cols() <= x.cols(), "cut_columns: {} columns from {} on, of {}",
             y.cols(), first, x.cols());
    require(y, x.rows() * y.cols(), x.dtype, "cut_columns", "y");
  }
};

/// y[n,wide] = x[n,wide] (factor[n,narrow] | ones); y may be x.
struct MultiplyColumnsOperands {
  Tensor x, factor, y;

  void check() const {
    MP_CHECK(factor.cols() <= x.cols(), "multiply_columns: {} columns times {}", x.cols(), factor.cols());
    require(factor, x.rows() * factor.cols(), x.dtype, "multiply_columns", "factor");
    require(y, x.count(), x.dtype, "multiply_columns", "y");
  }
};

}  // namespace mindpipe
