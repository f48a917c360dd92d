#pragma once
#include "operations/operands.h"
#include "operations/pixel_window.h"

/// Pictures as activations [samples, pixels, channels], and windows on them.
namespace mindpipe {

/// Refuses windows that do not fit x [samples, pixels, channels], or `behind`, whose rows are windows.
inline PixelCall pixel_call(const Tensor& x, const Tensor& behind, const PixelWindow& w, std::int64_t each,
                            const char* operation) {
  MP_CHECK(w.fits(), "{}: windows of side {} (odd, at most 15), stride {}, dilation {} on {} x {} pixels",
           operation, w.side, w.stride, w.dilation, w.height, w.width);
  MP_CHECK(x.shape.rank == 3 && x.shape[1] == w.pixels(), "{}: {} is not [samples, {} pixels, channels]",
           operation, to_string(x.shape), w.pixels());
  dtype_index(x.dtype);
  require(behind, x.shape[0] * w.windows() * x.shape[2] * each, x.dtype, operation,
          "what lies behind the windows");
  return {x.shape[0], x.shape[2], w};
}

/// y[s, o] = the pixels of x under window o, one tap after the other, zeros beyond the picture. x [samples,
/// pixels, channels], y [samples, windows, taps, channels].
struct PixelNeighboursOperands {
  Tensor x;
  PixelWindow window;
  Tensor y;

  PixelCall checked() const { return pixel_call(x, y, window, window.taps(), "pixel_neighbours"); }
};

/// dx[s, p] = the sum of dy[s, o, t] over all windows o with pixel p under tap t, in order of t.
struct PixelNeighboursBackwardOperands {
  Tensor dy;
  PixelWindow window;
  Tensor dx;

  PixelCall checked() const { return pixel_call(dx, dy, window, window.taps(), "pixel_neighbours_backward"); }
};

/// y[s, o, c] = sum over t of w[t, c] x[s, p, c], p the pixel under tap t of window o. w [taps, channels].
struct PixelDepthwiseOperands {
  Tensor x, w;
  PixelWindow window;
  Tensor y;

  PixelCall checked() const {
    require(w, window.taps() * x.cols(), x.dtype, "pixel_depthwise", "w");
    return pixel_call(x, y, window, 1, "pixel_depthwise");
  }
};

/// dx[s, p, c] = sum over t of w[t, c] dy[s, o, c], o the window with pixel p under tap t.
struct PixelDepthwiseBackwardInputOperands {
  Tensor dy, w;
  PixelWindow window;
  Tensor dx;

  PixelCall checked() const {
    require(w, window.taps() * dx.cols(), dx.dtype, "pixel_depthwise_backward_input", "w");
    return pixel_call(dx, dy, window, 1, "pixel_depthwise_backward_input");
  }
};

/// parts[i, t, c] = sum of x[s, p, c] dy[s, o, c] over part i of the windows of all samples, pixel_chunk
/// each.
struct PixelDepthwiseBackwardWeightOperands {
  Tensor dy, x;
  PixelWindow window;
  Tensor parts;

  PixelCall checked() const {
    const PixelCall call = pixel_call(x, dy, window, 1, "pixel_depthwise_backward_weight");
    require(parts, pixel_chunks(call.samples * window.windows()) * window.taps() * call.channels,
            wide(x.dtype), "pixel_depthwise_backward_weight", "parts");
    return call;
  }
};

/// y[s, o, c] = the largest, or the mean, of the pixels under window o that are there. `chosen` u8, where the
/// largest is asked for: the first tap that has it; a NaN is larger than all.
struct PoolOperands {
  PoolKind kind;
  Tensor x;
  PixelWindow window;
  Tensor y, chosen = {};

  PixelCall checked() const {
    MP_CHECK(window.dilation == 1, "pool: dilation {}", window.dilation);
    if (kind == PoolKind::maximum) require(chosen, y.count(), DType::u8, "pool", "chosen");
    return pixel_call(x, y, window, 1, "pool");
  }
};

/// dx[s, p, c] = the sum of dy over windows that have chosen p, or of their means' shares, in order of taps.
struct PoolBackwardOperands {
  PoolKind kind;
  Tensor dy, chosen = {};
  PixelWindow window;
  Tensor dx;

  PixelCall checked() const {
    MP_CHECK(window.dilation == 1, "pool_backward: dilation {}", window.dilation);
    if (kind == PoolKind::maximum) require(chosen, dy.count(), DType::u8, "pool_backward", "chosen");
    return pixel_call(dx, dy, window, 1, "pool_backward");
  }
};

/// y[s, c] = the mean of x[s, :, c], added row by row.
struct GlobalPoolOperands {
  Tensor x, y;

  void check() const {
    MP_CHECK(x.shape.rank == 3, "global_pool: {} is not [samples, pixels, channels]", to_string(x.shape));
    require(y, x.shape[0] * x.shape[2], x.dtype, "global_pool", "y");
  }
};

/// dx[s, p, c] = dy[s, c] / pixels
struct GlobalPoolBackwardOperands {
  Tensor dy, dx;

  void check() const {
    MP_CHECK(dx.shape.rank == 3, "global_pool_backward: {} is not [samples, pixels, channels]",
             to_string(dx.shape));
    require(dy, dx.shape[0] * dx.shape[2], dx.dtype, "global_pool_backward", "dy");
  }
};

/// y[n, j, i] = x[n, i, j], or is added to that, for x [n, rows, cols]: how weights come to lie tap by tap,
/// and their gradients channel by channel.
struct TransposeOperands {
  Tensor x;
  bool add = false;
  Tensor y;

  void check() const {
    MP_CHECK(x.shape.rank == 3, "transpose: {} is not [matrices, rows, cols]", to_string(x.shape));
    require(y, x.count(), x.dtype, "transpose", "y");
    dtype_index(x.dtype);
    MP_CHECK(!add || x.dtype == wide(x.dtype), "transpose: sums of {}", name_of(x.dtype));
  }
};

}  // namespace mindpipe
