#pragma once
#include "operations/gates.h"

/// Convolutions over the rows of samples. Tap t of row r is row r - before + t of the sample, t from 0 on;
/// rows before the first one, and from lengths[sample] on, are zeros. Without lengths all rows count.
namespace mindpipe {

/// How far a convolution over rows sees: an odd number of rows, itself in the middle, or last (causal).
struct Reach {
  static constexpr int most = 15;
  int taps = 1;
  bool causal = false;

  constexpr int before() const { return causal ? taps - 1 : taps / 2; }
  constexpr bool fits() const { return taps > 0 && taps % 2 == 1 && taps <= most; }
};

inline TapCall tap_call(const Tensor& x, const Tensor& lengths, const Reach& reach, const char* operation) {
  MP_CHECK(reach.fits(), "{}: {} taps (an odd number up to {} is needed)", operation, reach.taps,
           Reach::most);
  return {length_call(x, lengths, operation), reach.taps, reach.before()};
}

/// y[s,r,c] = sum over t of w[t,c] x[s, r - before + t, c], in order of t; w [taps, cols].
struct DepthwiseOperands {
  Tensor x, w, lengths = {};
  Reach reach;
  Tensor y;

  TapCall checked() const {
    require(y, x.count(), x.dtype, "depthwise", "y");
    require(w, reach.taps * x.cols(), x.dtype, "depthwise", "w");
    return tap_call(x, lengths, reach, "depthwise");
  }
};

/// dx[s,i,c] = sum over t of w[t,c] dy[s, i + before - t, c], from the last t to the first; zeros where i is
/// padding.
struct DepthwiseBackwardInputOperands {
  Tensor dy, w, lengths = {};
  Reach reach;
  Tensor dx;

  TapCall checked() const {
    require(dx, dy.count(), dy.dtype, "depthwise_backward_input", "dx");
    require(w, reach.taps * dy.cols(), dy.dtype, "depthwise_backward_input", "w");
    return tap_call(dy, lengths, reach, "depthwise_backward_input");
  }
};

/// dw[t,c] += sum over rows of dy[s,r,c] x[s, r - before + t, c], in order of rows (CUDA: in fixed chunks).
struct DepthwiseBackwardWeightOperands {
  Tensor dy, x, lengths = {};
  Reach reach;
  Tensor dw;

  TapCall checked() const {
    require(x, dy.count(), dy.dtype, "depthwise_backward_weight", "x");
    require(dw, reach.taps * dy.cols(), wide(dy.dtype), "depthwise_backward_weight", "dw");
    return tap_call(dy, lengths, reach, "depthwise_backward_weight");
  }
};

/// Rows and their neighbours, as rows for a product: y[s,r, t cols + c] = x[s, r - before + t, c].
struct RowNeighboursOperands {
  Tensor x, lengths = {};
  Reach reach;
  Tensor y;

  TapCall checked() const {
    require(y, reach.taps * x.count(), x.dtype, "row_neighbours", "y");
    return tap_call(x, lengths, reach, "row_neighbours");
  }
};

/// dx[s,i,c] = sum over t of dy[s, i + before - t, t cols + c], in order of t; zeros where i is padding.
struct RowNeighboursBackwardOperands {
  Tensor dy, lengths = {};
  Reach reach;
  Tensor dx;

  TapCall checked() const {
    require(dy, reach.taps * dx.count(), dx.dtype, "row_neighbours_backward", "dy");
    return tap_call(dx, lengths, reach, "row_neighbours_backward");
  }
};

/// Weights of a depthwise convolution that channels share: y[t,c] = softmax over t of w[t, c mod n], with w
/// [taps, n] and y [taps, cols].
struct ShareTapsOperands {
  Tensor w, y;

  SharedTaps checked() const { return shared(w, y, "share_taps"); }
  static SharedTaps shared(const Tensor& w, const Tensor& y, const char* operation) {
    MP_CHECK(w.shape.rank == 2 && y.shape.rank == 2 && w.shape[0] == y.shape[0] && w.cols() > 0 &&
                 y.cols() % w.cols() == 0,
             "{}: {} cannot be shared by {}", operation, to_string(w.shape), to_string(y.shape));
    MP_CHECK(w.shape[0] <= Reach::most, "{}: {} taps (at most {})", operation, w.shape[0], Reach::most);
    return {static_cast<int>(w.shape[0]), w.cols(), y.cols()};
  }
};

/// dw[t,j] += p (g - sum over taps of p g), p the softmax of w, g[t] the sum of dy[t,c] over the channels c
/// of column j, in order; dy and dw have the dtype of parameters' gradients.
struct ShareTapsBackwardOperands {
  Tensor dy, w, dw;

  SharedTaps checked() const {
    require(dw, w.count(), wide(w.dtype), "share_taps_backward", "dw");
    require_dtype(dy, wide(w.dtype), "share_taps_backward", "dy");
    return ShareTapsOperands::shared(w, dy, "share_taps_backward");
  }
};

}  // namespace mindpipe
