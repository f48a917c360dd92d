#pragma once
#include <optional>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/softmax.h"

namespace mindpipe {

/// Bytes of pictures as pixels, a convolution of them, and perhaps a batch norm: [samples, pixels, channels].
/// Every tensor rank computes it alike; where the sequence is cut it leaves with its own rows of pixels.
class PictureStem final : public Layer {
 public:
  PictureStem(const LayerContext& context, Unit& unit, const PictureShape& picture, const Conv2DSpec& conv,
              const std::optional<BatchNormSpec>& norm = {})
      : context_(context), picture_(picture), conv_(context, unit, conv) {
    if (norm) norm_.emplace(context, unit, "norm", Split::none, *norm);
  }
  std::vector<std::string_view> reads() const override { return {field::picture}; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;
  std::size_t statistics_bytes() const override { return norm_ ? norm_->statistics_bytes() : 0; }

 private:
  Tensor pixels(Tape& tape) const;

  LayerContext context_;
  PictureShape picture_;  ///< in patches of one pixel
  Conv2D conv_;
  std::optional<BatchNorm> norm_;
};

struct PictureBlockSpec {
  std::int64_t inputs = 0, outputs = 0;
  PixelWindow window;  ///< window of the first convolution
  double epsilon = 1e-5, momentum = 0.1;
};

/// Two convolutions beside the stream, each behind its batch norm and relu: x + conv2(a2(conv1(a1(x)))).
/// Where extents change the stream is a product of a1(x) instead of x. conv1 is cut by outputs, conv2 and
/// what stands between them by the same channels; a1 and the stream's product every tensor rank computes
/// alike. Saves x, what conv1 gives, and statistics.
class PictureBlock final : public Layer {
 public:
  PictureBlock(const LayerContext& context, Unit& unit, const PictureBlockSpec& spec);
  bool can_be_recomputed() const override { return true; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  /// Shape [shard][samples, windows, channels] of a tensor behind the first convolution.
  Shape behind(int shards, std::int64_t samples, std::int64_t channels) const {
    return {shards, samples, spec_.window.windows(), channels};
  }
  /// The gradient of what enters the first convolution, which is made again as `a1`; `dy` on all rows.
  Tensor branch_gradient(const Tensor& dy, const Tensor& a1, Tape& tape);

  LayerContext context_;
  PictureBlockSpec spec_;
  BatchNorm norm1_, norm2_;
  Conv2D conv1_, conv2_;
  std::optional<Conv2D> shortcut_;
};

/// Batch norm, relu, the mean over a picture's pixels, and a classifier, whose table is cut by rows. The rest
/// every tensor rank computes alike. Saves x, statistics, and the means.
class PooledClassifier final : public Layer {
 public:
  PooledClassifier(const LayerContext& context, Unit& unit, const BatchNormSpec& norm,
                   const SoftmaxSpec& softmax)
      : context_(context),
        norm_(context, unit, "final_norm", Split::none, norm),
        softmax_(context, unit, unit, softmax) {}
  std::vector<std::string_view> reads() const override { return {field::targets}; }
  std::size_t statistics_bytes() const override { return norm_.statistics_bytes(); }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  LayerContext context_;
  BatchNorm norm_;
  Softmax softmax_;
};

}  // namespace mindpipe
