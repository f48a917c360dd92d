#pragma once
#include "layers/layer.h"

namespace mindpipe {

/// LayerNorm or RMSNorm over the last extent, its form `rows`. Saves x and its statistics.
class Norm {
 public:
  Norm(const LayerContext& context, Unit& unit, const std::string& name, NormKind kind, std::int64_t width,
       double epsilon, bool offset);
  Tensor forward(const Tensor& x, Tape& tape);
  /// sum = x + dropout(branch + bias), and its norm, in one pass; the bits are those of one after the other.
  Tensor forward_sum(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                     const Window& window, const Tensor& sum, Tape& tape);
  /// dx = residual + gradient through the norm; `residual` may be none, or dx itself.
  void backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape);

 private:
  struct Outputs {
    Tensor y, statistics;
  };
  Outputs outputs_for(const Tensor& x, Tape& tape);

  LayerContext context_;
  NormKind kind_;
  double epsilon_;
  Param gain_, offset_;
};

}  // namespace mindpipe
