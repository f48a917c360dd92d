#include "layers/mlp.h"

namespace mindpipe {

Mlp::Mlp(const LayerContext& context, Unit& unit, const std::string& name, const MlpSpec& spec)
    : context_(context),
      spec_(spec),
      inner_(context, unit,
             {spec.gated ? std::vector<Piece>{{name + ".gate", spec.inner}, {name + ".up", spec.inner}}
                         : std::vector<Piece>{{name + ".up", spec.inner}},
              spec.width, Split::out, spec.bias, spec.deviation}),
      output_(context, unit, branch_output(name, spec.inner, spec.width, spec.output_deviation)) {}

void Mlp::drop(const Tensor& h, const Tape& tape) const {
  const Dropout dropped = dropout_at(context_, spec_.dropout, spec_.purpose, tape);
  for (int s = 0; dropped.probability > 0 && s < context_.tensor.local_shards(); ++s) {
    const Tensor own = h.at(s);
    Window window = window_of_whole(own);
    window.first_col = (context_.tensor.first_shard() + s) * own.cols();
    window.whole_cols = spec_.inner;
    context_.backend.dropout({own, dropped, window, own});
  }
}

Tensor Mlp::forward(const Tensor& x, const Boundary&, Tape& tape) {
  const Tensor whole = enter(context_, x, tape);
  const int shards = context_.tensor.local_shards();
  const std::int64_t samples = whole.shape[0], rows = whole.shape[1],
                     inner = spec_.inner / context_.tensor.logical();
  Tensor before, h;
  if (spec_.gated) {
    before = inner_.forward(whole, tape);
    h = tape.keep({shards, samples, rows, inner}, context_.dtype);
    for (int s = 0; s < shards; ++s) context_.backend.swiglu({before.at(s), h.at(s)});
  } else {
    before = tape.keep({shards, samples, rows, inner}, context_.dtype);
    h = inner_.forward(whole, tape, spec_.activation, before);
  }
  tape.save(before);
  drop(h, tape);
  return leave(context_, output_.forward(h, tape), tape);
}

Tensor Mlp::backward(const Tensor& dy, const Boundary&, Tape& tape) {
  const Tensor dbranch = enter_gradient(context_, dy, tape);
  Tensor dbefore;
  if (spec_.gated) {
    const Tensor dh = output_.backward(dbranch, tape), before = tape.restore();
    drop(dh, tape);
    dbefore = tape.scratch(before.shape, before.dtype);
    for (int s = 0; s < context_.tensor.local_shards(); ++s)
      context_.backend.swiglu_backward({dh.at(s), before.at(s), dbefore.at(s)});
  } else if (spec_.dropout > 0) {
    dbefore = output_.backward(dbranch, tape);
    drop(dbefore, tape);
    context_.backend.activation_backward({dbefore, tape.restore(), spec_.activation, dbefore});
  } else {
    dbefore = output_.backward(dbranch, tape, spec_.activation, tape.peek(1));
    tape.restore();
  }
  return leave(context_, inner_.backward(dbefore, tape), tape);
}

}  // namespace mindpipe
