#pragma once
#include <memory>

#include "layers/layer.h"

namespace mindpipe {

/// A block whose inner activations are not kept: forward saves its input only, backward runs the forward
/// again and then goes back through it. Randomness is a function, so the second pass has the first one's
/// bits.
class Recompute final : public Layer {
 public:
  explicit Recompute(std::unique_ptr<Layer> block) : block_(std::move(block)) {}
  Boundary forward(Boundary in, Tape& tape) override;
  Boundary backward(Boundary dout, Tape& tape) override;

 private:
  std::unique_ptr<Layer> block_;
};

}  // namespace mindpipe
