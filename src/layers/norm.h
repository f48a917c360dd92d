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
  /// Without `y`, where the norm goes, it is kept, or goes to scratch: the tape makes it again for whoever
  /// saves it, so nobody may change it.
  Tensor forward(const Tensor& x, Tape& tape, Tensor y = {});
  /// sum = x + dropout(branch + bias), and its norm, in one pass; the bits are those of one after the other.
  Tensor forward_sum(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                     const SequencePart& sequence, const Tensor& sum, Tape& tape, const Tensor& y);
  /// What forward gave of x, whose statistics it saved.
  void forward_again(const Tensor& x, const Tensor& statistics, const Tensor& y) const;
  /// dx = residual + gradient through the norm; `residual` may be none, or dx itself. `dbias`, unless none:
  /// the gradient of a bias that was added to what `residual` is the gradient of.
  void backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape,
                const Tensor& dbias = {});

 private:
  Tensor offset() const { return offset_ ? offset_.value() : Tensor{}; }
  /// Memory for the statistics of x; both are saved, so that the tape can make y again.
  Tensor saved_statistics(const Tensor& x, const Tensor& y, Tape& tape) const;

  LayerContext context_;
  NormKind kind_;
  double epsilon_;
  Param gain_, offset_;
};

}  // namespace mindpipe
