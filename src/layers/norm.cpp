#include "layers/norm.h"

namespace mindpipe {

Norm::Norm(const LayerContext& context, Unit& unit, const std::string& name, NormKind kind,
           std::int64_t width, double epsilon, bool offset, Form form)
    : context_(context), kind_(kind), epsilon_(epsilon) {
  gain_ = unit.add({{{name + ".weight", width}}, 0, Split::none, form, {Initial::Kind::one}, false});
  if (offset) offset_ = unit.add({{{name + ".bias", width}}, 0, Split::none, form, {}, false});
}

Tensor Norm::saved_statistics(const Tensor& x, const Tensor& y, Tape& tape) const {
  const Tensor statistics = tape.keep({x.rows(), 2}, x.dtype == DType::f64 ? DType::f64 : DType::f32);
  tape.save(x);
  tape.save(statistics);
  tape.can_make_again(y, *this, x, statistics);
  return statistics;
}

void Norm::forward_again(const Tensor& x, const Tensor& statistics, const Tensor& y) const {
  context_.backend.norm({kind_, x, gain_.value(), offset(), epsilon_, statistics, y});
}

Tensor Norm::forward(const Tensor& x, Tape& tape, Tensor y) {
  if (!y) y = context_.keeps_norms() ? tape.keep(x.shape, x.dtype) : tape.scratch(x.shape, x.dtype);
  forward_again(x, saved_statistics(x, y, tape), y);
  return y;
}

Tensor Norm::forward_sum(const Tensor& x, const Tensor& branch, const Tensor& bias, const Dropout& dropout,
                         const SequencePart& sequence, const Tensor& sum, Tape& tape, const Tensor& y) {
  const Tensor statistics = saved_statistics(sum, y, tape);
  context_.backend.residual_norm(
      {x, branch, bias, dropout, sequence, sum, kind_, gain_.value(), offset(), epsilon_, statistics, y});
  return y;
}

void Norm::backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape,
                    const Tensor& dbias) {
  const Tensor statistics = tape.restore(), x = tape.restore();
  context_.backend.norm_backward({kind_, dy, x, gain_.value(), statistics, residual, dx, gain_.gradient(),
                                  offset_ ? offset_.gradient() : Tensor{}, dbias});
}

}  // namespace mindpipe
