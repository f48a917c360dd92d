#pragma once
#include "layers/branch.h"
#include "layers/linear.h"

namespace mindpipe {

struct MlpSpec {
  std::int64_t width = 0, inner = 0;
  Activation activation = Activation::gelu;
  bool gated = false;  ///< silu(gate) * up instead of activation(up)
  bool bias = false;
  double deviation = 0.02, output_deviation = 0.02;
  double dropout = 0;         ///< rate behind the activation
  std::uint64_t purpose = 0;  ///< key of that dropout
};

/// Two products, the inner width divided over the shards. Saves what went into the activation; what came out,
/// as large, is made again in the backward, at a hundredth of a product's time.
class Mlp final : public Branch {
 public:
  Mlp(const LayerContext& context, Unit& unit, const std::string& name, const MlpSpec& spec);
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  Shape inner_shape(std::int64_t samples, std::int64_t rows) const;
  /// h = activation(before), or silu(gate) * up, with elements dropped.
  void activate(const Tensor& before, const Tensor& h, const Tape& tape) const;
  /// Drops elements of what the activation gave, or of its gradient, where something is dropped at all.
  void drop(const Tensor& h, const Tape& tape) const;

  LayerContext context_;
  MlpSpec spec_;
  Linear inner_, output_;
};

}  // namespace mindpipe
