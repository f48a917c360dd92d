#pragma once
#include "layers/layer.h"

namespace mindpipe {

/// The largest or the mean of the pixels under each window, without parameters. Every tensor rank computes it
/// alike; its form is `whole`. Saves which pixel was the largest.
class Pool2D {
 public:
  Pool2D(const LayerContext& context, PoolKind kind, const PixelWindow& window);
  /// x [samples, pixels, channels] -> y [samples, windows, channels]
  void forward(const Tensor& x, const Tensor& y, Tape& tape);
  void backward(const Tensor& dy, const Tensor& dx, Tape& tape);

 private:
  Backend& backend_;
  PoolKind kind_;
  PixelWindow window_;
};

}  // namespace mindpipe
