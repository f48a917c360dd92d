#pragma once
#include "layers/convolution.h"

namespace mindpipe {

struct NormedMlpSpec {
  std::int64_t width = 0, inner = 0;
  Activation activation = Activation::silu;
  double dropout = 0;  ///< rate behind the activation
  double epsilon = 1e-6;
};

/// Two products with a LayerNorm between them: norm(drop(activation(x w1 + b1))) w2, whose bias is the
/// block's. Undivided, since a row is normed as a whole before the second product sums it.
class NormedMlp final : public Branch {
 public:
  NormedMlp(const LayerContext& context, Unit& unit, const std::string& name, const std::string& path,
            const NormedMlpSpec& spec);
  Tensor forward(const Tensor& x, const Boundary& in, Tape& tape) override;
  Tensor backward(const Tensor& dy, const Boundary& dout, Tape& tape) override;

 private:
  void drop(const Tensor& h, const Tape& tape) const;

  LayerContext context_;
  NormedMlpSpec spec_;
  std::uint64_t purpose_;
  Dense inner_;
  Norm norm_;
  Linear output_;
};

}  // namespace mindpipe
