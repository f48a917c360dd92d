#include "layers/normed_mlp.h"

namespace mindpipe {

NormedMlp::NormedMlp(const LayerContext& context, Unit& unit, const std::string& name,
                     const std::string& path, const NormedMlpSpec& spec)
    : context_(context),
      spec_(spec),
      purpose_(purpose_of(path + ".inner.dropout")),
      inner_(context, unit, name + ".up", spec.width, spec.inner, spec.activation),
      norm_(context, unit, name + ".norm", NormKind::layer, spec.inner, spec.epsilon, true, Form::whole),
      output_(context, unit,
              {{{name + ".output", spec.width}},
               spec.inner,
               Split::none,
               false,
               even_deviation(spec.inner, spec.width)}) {}

void NormedMlp::drop(const Tensor& h, const Tape& tape) const {
  const Dropout dropped = dropout_at(context_, spec_.dropout, purpose_, tape);
  if (dropped.probability > 0) context_.backend.dropout({h, dropped, whole_sequences_of(h), h});
}

Tensor NormedMlp::forward(const Tensor& x, const Boundary&, Tape& tape) {
  const Tensor h = inner_.forward(enter(context_, x, tape), tape);
  drop(h, tape);
  return own_rows(context_, output_.forward(norm_.forward(h, tape), tape).at(0), tape);
}

Tensor NormedMlp::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor dnormed = output_.backward(enter_gradient(context_, dy, tape), tape).at(0),
               dh = tape.scratch(dnormed.shape, dnormed.dtype);
  norm_.backward(dnormed, {}, dh, tape);
  drop(dh, tape);
  return own_rows(context_, inner_.backward(dh, tape), tape);
}

}  // namespace mindpipe
