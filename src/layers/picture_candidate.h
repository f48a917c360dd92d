#pragma once
#include <optional>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/pool2d.h"

namespace mindpipe {

struct PictureCandidateSpec {
  std::int64_t inputs = 0, outputs = 0;
  PixelWindow window;            ///< window of the convolution or the pool
  std::optional<PoolKind> pool;  ///< else it convolves
  bool separable = false;        ///< each channel by itself, then each pixel by itself
  bool plain = false;  ///< a convolution of x as it is, and nothing beside it: identity, where it halves
  BatchNormSpec norm;

  bool halves() const { return window.stride > 1; }
  /// A pool that changes nothing but pixels has no parameters.
  bool has_parameters() const { return !pool || halves(); }
  /// Whether what is convolved is added to x.
  bool adds() const { return !pool && !plain && !halves(); }
};

/// A layer that a block of a space of pictures may be: norm(convolution(relu(x))), beside x where the picture
/// keeps its size; pool(x), and where that halves the picture norm(convolution(pool(x))), each pixel by
/// itself. Every tensor rank computes it alike; where the sequence is cut it leaves with its own rows of
/// pixels.
class PictureCandidate final : public Layer {
 public:
  /// `unit`: none where it has no parameters.
  PictureCandidate(const LayerContext& context, Unit* unit, const PictureCandidateSpec& spec);
  std::size_t statistics_bytes() const override { return norm_ ? norm_->statistics_bytes() : 0; }
  bool can_be_recomputed() const override { return true; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  bool activates() const { return !spec_.pool && !spec_.plain; }
  Tensor activated(const Tensor& x, Tape& tape) const;
  void convolve(const Tensor& x, const Tensor& y, Tape& tape);
  /// The gradient of what was convolved or pooled, `x` of it again where it was convolved.
  void unconvolve(const Tensor& dy, const Tensor& x, const Tensor& dx, Tape& tape);
  void whole_forward(const Tensor& x, const Tensor& y, Tape& tape);
  void whole_backward(const Tensor& dy, const Tensor& dx, Tape& tape);

  LayerContext context_;
  PictureCandidateSpec spec_;
  std::optional<Pool2D> pool_;
  std::optional<Conv2D> conv_;
  std::optional<SeparableConv2D> separable_;
  std::optional<BatchNorm> norm_;
};

}  // namespace mindpipe
