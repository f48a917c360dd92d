#include "layers/mlp.h"

namespace mindpipe {

Mlp::Mlp(const LayerContext& context, Unit& unit, const std::string& name, const MlpSpec& spec)
    : context_(context),
      spec_(spec),
      inner_(context, unit,
             {spec.gated ? std::vector<Piece>{{name + ".gate", spec.inner}, {name + ".up", spec.inner}}
                         : std::vector<Piece>{{name + ".up", spec.inner}},
              spec.width, Split::out, spec.bias, spec.deviation, spec.gated}),
      output_(context, unit, branch_output(name, spec.inner, spec.width, spec.output_deviation)) {}

Shape Mlp::inner_shape(std::int64_t samples, std::int64_t rows) const {
  return {context_.tensor.local_shards(), samples, rows, spec_.inner / context_.tensor.logical()};
}

void Mlp::drop(const Tensor& h, const Tape& tape) const {
  const Dropout dropped = dropout_at(context_, spec_.dropout, spec_.purpose, tape);
  for (int s = 0; dropped.probability > 0 && s < context_.tensor.local_shards(); ++s) {
    const Tensor own = h.at(s);
    SequencePart sequence = whole_sequences_of(own);
    sequence.first_col = (context_.tensor.first_shard() + s) * own.cols();
    sequence.whole_cols = spec_.inner;
    context_.backend.dropout({own, dropped, sequence, own});
  }
}

void Mlp::activate(const Tensor& before, const Tensor& h, const Tape& tape) const {
  for (int s = 0; s < context_.tensor.local_shards(); ++s) {
    if (spec_.gated) context_.backend.swiglu({before.at(s), h.at(s)});
    else context_.backend.activation({before.at(s), spec_.activation, h.at(s)});
  }
  drop(h, tape);
}

Tensor Mlp::forward(const Tensor& x, const Boundary&, Tape& tape) {
  const Tensor whole = enter(context_, x, tape);
  const Shape inner = inner_shape(whole.shape[0], whole.shape[1]);
  Tensor before, h;
  if (spec_.gated) {
    before = inner_.forward(whole, tape);
    h = tape.scratch(inner, context_.dtype);
    activate(before, h, tape);
  } else {
    before = tape.keep(inner, context_.dtype);
    h = inner_.forward(whole, tape, spec_.activation, before);
    drop(h, tape);
  }
  tape.save(before);
  return leave(context_, output_.multiply(h, tape), tape);
}

Tensor Mlp::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor dbranch = enter_gradient(context_, dy, tape), before = tape.restore();
  const Tensor h = tape.made_again(inner_shape(before.shape[1], before.shape[2]), before.dtype);
  activate(before, h, tape);
  Tensor dbefore;
  if (spec_.gated) {
    const Tensor dh = output_.backward(dbranch, h, tape);
    drop(dh, tape);
    dbefore = tape.scratch(before.shape, before.dtype);
    for (int s = 0; s < context_.tensor.local_shards(); ++s)
      context_.backend.swiglu_backward({dh.at(s), before.at(s), dbefore.at(s)});
  } else if (spec_.dropout > 0) {
    dbefore = output_.backward(dbranch, h, tape);
    drop(dbefore, tape);
    context_.backend.activation_backward({dbefore, before, spec_.activation, dbefore});
  } else {
    dbefore = output_.backward(dbranch, h, tape, spec_.activation, before);
  }
  tape.gives_up(before);
  return leave(context_, inner_.backward(dbefore, tape), tape);
}

}  // namespace mindpipe
