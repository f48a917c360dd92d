#include "layers/picked_classifier.h"

namespace mindpipe {

PickedClassifier::PickedClassifier(const LayerContext& context, Unit& table, Unit& unit,
                                   const SoftmaxSpec& spec, const TransformSpec& transform)
    : context_(context),
      width_(spec.width),
      picks_(transform.picks),
      activation_(transform.activation),
      softmax_(context, table, unit, spec) {
  if (activation_ != Activation::none)
    transform_.emplace(
        context, unit,
        LinearSpec{{{"transform", spec.width}}, spec.width, Split::none, true, spec.deviation});
  if (transform.norm)
    norm_.emplace(context, unit, "final_norm", transform.norm->kind, spec.width, transform.norm->epsilon,
                  transform.norm->offset, Form::whole);
}

Tensor PickedClassifier::picked_rows(Tape& tape) const {
  if (picks_) return tape.batch.fields.at(field::picked);
  const Tensor first = tape.scratch({tape.batch.samples, 1}, DType::i32);
  context_.backend.fill({first, 0});
  return first;
}

Tensor PickedClassifier::transformed(const Tensor& picked, Tape& tape) {
  Tensor h = picked;
  if (transform_) {
    const Tensor before = tape.keep({1, h.shape[0], h.shape[1], width_}, h.dtype);
    h = transform_->forward(h, tape, activation_, before).at(0);
    tape.save(before);
  }
  return norm_ ? norm_->forward(h, tape) : h;
}

Boundary PickedClassifier::forward(Boundary in, Tape& tape) {
  MP_CHECK(tape.mode != Tape::Mode::generate, "a classifier of picked rows does not continue texts");
  Tape::Scope scope(tape);
  const Tensor rows = picked_rows(tape);
  const Tensor picked = tape.keep({rows.shape[0], rows.shape[1], width_}, context_.dtype);
  {
    Tape::Scope whole(tape);  // nobody reads all rows again
    context_.backend.pick_rows({enter_gradient(context_, in.activation, tape), rows, picked});
  }
  const Tensor x = transformed(picked, tape);
  if (tape.saves()) {
    tape.save(x);
    tape.save(in.activation);  // which is there anyway, for its shape
    return in;
  }
  softmax_.evaluate(x.reshaped({x.rows(), width_}), tape);
  return in;
}

Tensor PickedClassifier::transform_gradient(const Tensor& dnormed, Tape& tape) {
  Tensor dh = dnormed;
  if (norm_) norm_->backward(dnormed, {}, dh = tape.scratch(dnormed.shape, dnormed.dtype), tape);
  if (!transform_) return dh;
  context_.backend.activation_backward({dh, tape.restore(), activation_, dh});
  return transform_->backward(dh, tape).at(0);
}

Boundary PickedClassifier::backward(Boundary, Tape& tape) {
  const Tensor dx = tape.scratch(tape.restore().shape, context_.dtype);
  Tape::Scope scope(tape);
  const Tensor x = tape.restore(), rows = picked_rows(tape);
  const std::int64_t n = x.rows();
  const int shards = context_.tensor.local_shards();
  const Tensor parts = tape.scratch({shards, n, width_}, context_.dtype);
  softmax_.backward(x.reshaped({n, width_}), tape.batch.fields.at(field::targets).reshaped({n}),
                    tape.losses.reshaped({n}), parts, tape);
  const Tensor total = parts.at(0);
  if (context_.tensor.logical() > 1) context_.tensor.sum(parts, total);
  const Tensor dpicked = transform_gradient(total.reshaped(x.shape), tape);
  context_.backend.put_rows({dpicked, rows, sequence_part_of(context_, dx).first, dx});
  return {dx, {}};
}

}  // namespace mindpipe
