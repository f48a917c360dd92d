#pragma once
#include <memory>

#include "layers/norm.h"

namespace mindpipe {

/// What a residual block computes between its norm and its sum: attention, an MLP. `x` is the normed
/// activation; the result is [samples, rows, width] without its last bias, which follows the sum over shards.
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

/// x + dropout(branch(norm(x)) + bias): one element of a model's list.
class ResidualBlock final : public Layer {
 public:
  ResidualBlock(const LayerContext& context, Norm norm, std::unique_ptr<Branch> branch, Param bias,
                double dropout, const std::string& path)
      : context_(context),
        norm_(std::move(norm)),
        branch_(std::move(branch)),
        bias_(bias),
        dropout_(dropout),
        purpose_(purpose_of(path + ".dropout")) {}
  Norm* opening_norm() override { return &norm_; }
  std::vector<std::string_view> reads() const override { return branch_->reads(); }
  std::size_t cache_bytes(std::int64_t samples) const override { return branch_->cache_bytes(samples); }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  LayerContext context_;
  Norm norm_;
  std::unique_ptr<Branch> branch_;
  Param bias_;
  double dropout_;
  std::uint64_t purpose_;
};

/// The bias of a residual block: added behind the sum over shards, so its form is `rows`.
Param residual_bias(Unit& unit, const std::string& name, std::int64_t width);

}  // namespace mindpipe
