#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct Conv2DSpec {
  std::string name;  ///< the weight's path below the unit, "conv1"
  std::int64_t inputs = 0, outputs = 0;
  PixelWindow window;  ///< whose side is odd; what lies beyond a picture is zero
  Split split = Split::none;
  double deviation = 0.02;
};

/// Refuses windows without a middle, and those on no picture.
void require_window(const PixelWindow& window, const std::string& name);

/// A convolution whose first weights keep the size of gradients (He): deviation sqrt(2 / (taps outputs)).
Conv2DSpec conv_spec(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                     const PixelWindow& window, Split split);

/// y[o] = sum over the taps of window o of the pixel there times its weights [outputs, inputs, taps]:
/// neighbours as rows for a product, some samples at a time, a product for each local logical shard. Its form
/// is `whole`. Split::out cuts outputs, Split::in inputs, as in Linear. Saves nothing: who calls backward
/// makes x again.
class Conv2D {
 public:
  Conv2D(const LayerContext& context, Unit& unit, const Conv2DSpec& spec);

  /// x [samples, pixels, inputs], of Split::in [shard][samples, pixels, inputs / T] -> y [shard][samples,
  /// windows, outputs]: of Split::out each has a T-th of them, of Split::in they are to be summed by leave().
  void forward(const Tensor& x, const Tensor& y, Tape& tape);
  /// dy [shard][samples, windows, outputs / T]; of Split::in the same for every shard -> dx [shard][samples,
  /// pixels, inputs], of Split::out to be summed, of Split::in each its T-th; none where nobody asks for dx.
  void backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape);

  /// Numbers of a shard of x and y.
  std::int64_t inputs() const { return inputs_; }
  std::int64_t outputs() const { return outputs_; }
  int shards() const { return spec_.split == Split::none ? 1 : context_.tensor.local_shards(); }

 private:
  bool has_neighbours() const { return spec_.window.side > 1 || spec_.window.stride > 1; }
  std::int64_t samples_at_once(std::int64_t samples) const;
  /// The weight with inputs last, [outputs, taps inputs].
  Tensor weight(int shard, Tape& tape) const;
  Tensor neighbours(const Tensor& x, Tape& tape) const;

  LayerContext context_;
  Conv2DSpec spec_;
  std::int64_t inputs_, outputs_;
  Param weight_;
};

/// [samples, rows, channels] as what one shard has: of a convolution that is not cut.
inline Tensor as_one_shard(const Tensor& t) { return t.reshaped({1, t.shape[0], t.shape[1], t.shape[2]}); }

/// A convolution of each channel by itself, then a product of each pixel's channels. Every tensor rank
/// computes it alike (Split::none, form `whole`). Saves nothing: who calls backward makes x again. Its spec's
/// deviation is that of a convolution over all channels; each of the two keeps sizes as that one would.
class SeparableConv2D {
 public:
  SeparableConv2D(const LayerContext& context, Unit& unit, const Conv2DSpec& spec);
  /// x [samples, pixels, inputs] -> y [samples, windows, outputs]
  void forward(const Tensor& x, const Tensor& y, Tape& tape);
  void backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape);

 private:
  Tensor taps(Tape& tape) const;
  Tensor depthwise(const Tensor& x, const Tensor& taps, Tape& tape) const;

  LayerContext context_;
  Conv2DSpec spec_;
  Param taps_;
  Conv2D pointwise_;
};

/// The window of a product of each pixel by itself.
PixelWindow each_pixel(const PixelWindow& behind);

}  // namespace mindpipe
