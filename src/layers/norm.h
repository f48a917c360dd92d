#pragma once
#include "layers/layer.h"

namespace mindpipe {

struct NormSpec {
  NormKind kind = NormKind::layer;
  double epsilon = 1e-5;
  bool offset = true;
};

/// LayerNorm or RMSNorm over the last extent, its form `rows`, or `whole` where every tensor rank norms the
/// same rows. Saves x and its statistics.
class Norm {
 public:
  Norm(const LayerContext& context, Unit& unit, const std::string& name, NormKind kind, std::int64_t width,
       double epsilon, bool offset, Form form = Form::rows);
  /// `y`, where the norm goes, is kept for a backward unless given.
  Tensor forward(const Tensor& x, Tape& tape, Tensor y = {});
  /// sum = x + dropout(branch + bias), and its norm, in one pass; the bits are those of one after the other.
  Tensor forward_sum(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                     const Window& window, const Tensor& sum, Tape& tape, Tensor y = {});
  /// dx = residual + gradient through the norm; `residual` may be none, or dx itself.
  void backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape);

 private:
  /// Room for the statistics of x; both are saved.
  Tensor saved_statistics(const Tensor& x, Tape& tape);

  LayerContext context_;
  NormKind kind_;
  double epsilon_;
  Param gain_, offset_;
};

}  // namespace mindpipe
