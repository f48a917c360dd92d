#pragma once
#include "layers/branch.h"
#include "layers/linear.h"

namespace mindpipe {

/// A gated linear unit: (x w1 + b1) sigmoid(x w2 + b2), as wide as its input. Undivided: every tensor rank
/// computes all of it alike, since nothing is summed that ranks could share. Saves both products.
class GatedUnit final : public Branch {
 public:
  GatedUnit(const LayerContext& context, Unit& unit, const std::string& name, std::int64_t width);
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  LayerContext context_;
  Linear both_;
};

}  // namespace mindpipe
