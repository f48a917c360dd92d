#pragma once
#include <memory>

#include "layers/layer.h"

namespace mindpipe {

/// A block whose inner activations are not kept: forward saves its input only, backward runs the forward
/// again, with the same bits since randomness is a function, and goes back through it.
class Recompute final : public Layer {
 public:
  explicit Recompute(std::unique_ptr<Layer> block) : block_(std::move(block)) {}
  std::vector<std::string_view> reads() const override { return block_->reads(); }
  std::size_t cache_bytes(std::int64_t samples) const override { return block_->cache_bytes(samples); }
  std::size_t statistics_bytes() const override { return block_->statistics_bytes(); }
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  std::unique_ptr<Layer> block_;
};

/// A layer that is recomputed where it can be, or whose candidates are; else the layer as it is.
std::unique_ptr<Layer> recomputed(std::unique_ptr<Layer> layer);

}  // namespace mindpipe
