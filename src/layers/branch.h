#pragma once
#include <memory>

#include "layers/norm.h"

namespace mindpipe {

/// What a residual block computes beside its stream: attention, an MLP. `x` is what enters it, the normed
/// activation of a pre-norm block, the activation itself of a post-norm block; the result is [samples, rows,
/// width] without its last bias, which follows the sum over shards.
class Branch {
 public:
  virtual ~Branch() = default;
  virtual Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) = 0;
  /// Gives the gradient of x; adds its part to dout.encoder_output where it read the encoder's output.
  virtual Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) = 0;
  /// What Layer::reads and Layer::cache_bytes ask.
  virtual std::vector<std::string_view> reads() const { return {}; }
  virtual std::size_t cache_bytes(std::int64_t samples) const {
    static_cast<void>(samples);
    return 0;
  }
};

/// A branch beside the stream, and a norm: what residual blocks of either order consist of.
class NormedBlock : public Layer {
 public:
  NormedBlock(const LayerContext& context, Norm norm, std::unique_ptr<Branch> branch, Param bias,
              double dropout, const std::string& path)
      : context_(context),
        norm_(std::move(norm)),
        branch_(std::move(branch)),
        bias_(bias),
        dropout_(dropout),
        purpose_(purpose_of(path + ".dropout")) {}
  bool can_be_recomputed() const override { return true; }
  std::vector<std::string_view> reads() const override { return branch_->reads(); }
  std::size_t cache_bytes(std::int64_t samples) const override { return branch_->cache_bytes(samples); }

 protected:
  Tensor bias() const { return bias_ ? bias_.value() : Tensor{}; }
  Dropout dropout(const Tape& tape) const { return dropout_at(context_, dropout_, purpose_, tape); }
  /// From the gradient of the sum to that of the branch; the bias, if there is one, gets its own. Where that
  /// is the columns of `dsum` added up and `dbias_of_sum` is asked for, it is told there for whoever reads
  /// `dsum` again, and left to them.
  Tensor branch_gradient(const Tensor& dsum, Tape& tape, Tensor* dbias_of_sum = nullptr);

  LayerContext context_;
  Norm norm_;
  std::unique_ptr<Branch> branch_;

 private:
  Param bias_;
  double dropout_;
  std::uint64_t purpose_;
};

/// x + dropout(branch(norm(x)) + bias): one element of a model's list.
class ResidualBlock final : public NormedBlock {
 public:
  using NormedBlock::NormedBlock;
  Norm* opening_norm(const Tape&) override { return &norm_; }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;
};

/// norm(x + dropout(branch(x) + bias)): the sum is normed, not what the branch reads.
class PostNormBlock final : public NormedBlock {
 public:
  using NormedBlock::NormedBlock;
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;
};

/// The bias of a residual block: added behind the sum over shards, so its form is `rows`.
Param residual_bias(Unit& unit, const std::string& name, std::int64_t width);

}  // namespace mindpipe
