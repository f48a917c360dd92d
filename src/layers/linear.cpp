#include "layers/linear.h"

namespace mindpipe {

Linear::Linear(const LayerContext& context, Unit& unit, const LinearSpec& spec)
    : context_(context), split_(spec.split), stays_(spec.stays && spec.split != Split::in) {
  const std::int64_t shards = context.tensor.logical();
  ParamSpec weight{
      spec.outputs, spec.inputs, spec.split, Form::whole, {Initial::Kind::normal, spec.deviation}, true};
  weight.product = true;
  weight.of_products = 1;
  for (Piece& piece : weight.pieces) piece.name += ".weight";
  inputs_ = spec.split == Split::in ? spec.inputs / shards : spec.inputs;
  outputs_ = spec.split == Split::out ? weight.rows() / shards : weight.rows();
  weight_ = unit.add(weight);
  if (spec.bias) {
    MP_CHECK(spec.split != Split::in, "{}: a bias behind a sum belongs to the block", spec.outputs[0].name);
    ParamSpec bias{spec.outputs, 0, spec.split, Form::whole, {}, false};
    for (Piece& piece : bias.pieces) piece.name += ".bias";
    bias_ = unit.add(bias);
  }
}

Tensor Linear::forward(const Tensor& x, Tape& tape, Activation activation, Tensor before) {
  const Tensor y = multiply(x, tape, activation, before);
  tape.save(x);
  return y;
}

Tensor Linear::multiply(const Tensor& x, Tape& tape, Activation activation, Tensor before) {
  const int shards = local_shards();
  const bool sharded_input = split_ == Split::in;
  const std::int64_t samples = x.shape[sharded_input ? 1 : 0], rows = x.shape[sharded_input ? 2 : 1];
  const Shape shape{shards, samples, rows, outputs_};
  // What a sum follows is gone once summed.
  const Tensor y = stays_ ? tape.keep(shape, context_.dtype) : tape.scratch(shape, context_.dtype);
  for (int s = 0; s < shards; ++s) {
    const Tensor x_s = (sharded_input ? x.at(s) : x).reshaped({samples * rows, inputs_});
    const Tensor y_s = y.at(s).reshaped({samples * rows, outputs_});
    context_.backend.linear({.x = x_s,
                             .w = weight_.value(s),
                             .bias = bias_ ? bias_.value(s) : Tensor{},
                             .activation = activation,
                             .before = before ? before.at(s).reshaped({samples * rows, outputs_}) : Tensor{},
                             .y = y_s});
  }
  return y;
}

Tensor Linear::backward(const Tensor& dy, const Tensor& x, Tape& tape, Activation activation, Tensor before) {
  const int shards = local_shards();
  const bool sharded_input = split_ == Split::in, sharded_output = split_ == Split::out;
  const std::int64_t samples = x.shape[sharded_input ? 1 : 0], rows = x.shape[sharded_input ? 2 : 1],
                     n = samples * rows;
  const Tensor dx = tape.scratch({shards, samples, rows, inputs_}, x.dtype), lasts = tape.lasting(dy);
  for (int s = 0; s < shards; ++s) {
    const Tensor dy_s = (sharded_output ? dy.at(s) : dy).reshaped({n, outputs_});
    const Tensor x_s = (sharded_input ? x.at(s) : x).reshaped({n, inputs_});
    context_.backend.linear_backward_input({.dy = dy_s,
                                            .w = weight_.value(s),
                                            .activation = activation,
                                            .before = before ? before.at(s).reshaped({n, inputs_}) : Tensor{},
                                            .dx = dx.at(s).reshaped({n, inputs_})});
    tape.weight_gradient((sharded_output ? lasts.at(s) : lasts).reshaped({n, outputs_}), x_s, weight_, s);
    if (bias_) {
      const Tensor db = bias_.gradient(s);
      context_.backend.bias_backward(
          {dy_s.reshaped({samples, rows, outputs_}), db.reshaped({1, db.count()})});
    }
  }
  return dx;
}

}  // namespace mindpipe
