#include "layers/classifier.h"

namespace mindpipe {

Classifier::Classifier(const LayerContext& context, Unit& table, Unit& unit, const ClassifierSpec& spec)
    : context_(context),
      width_(spec.width),
      norm_(spec.normed ? std::optional<Norm>(std::in_place, context, unit, "final_norm", spec.norm,
                                              spec.width, spec.epsilon, spec.norm_offset)
                        : std::nullopt),
      softmax_(context, table, unit, spec.softmax()) {}

void Classifier::last_logits(const Tensor& normed, Tape& tape) {
  const std::int64_t samples = normed.shape[0], rows = normed.shape[1];
  const Tensor last = tape.scratch({samples, width_}, normed.dtype);
  for (std::int64_t i = 0; i < samples; ++i)
    context_.backend.copy(normed.at(i).row_range(rows - 1, 1).reshaped({width_}), last.at(i));
  softmax_.logits(last, tape.logits);
}

Boundary Classifier::forward(Boundary in, Tape& tape) {
  const auto normed = [&] { return norm_ ? norm_->forward(in.activation, tape) : in.activation; };
  Tape::Scope scope(tape);
  if (tape.saves()) {
    tape.save(in.normed ? in.normed : normed());
    tape.save(in.activation);  // which is there anyway, for its shape
    return in;
  }
  const Tensor whole = enter(context_, normed(), tape);
  if (tape.mode == Tape::Mode::generate) {
    last_logits(whole, tape);
    return in;
  }
  softmax_.evaluate(whole.reshaped({whole.rows(), width_}), tape);
  return in;
}

Boundary Classifier::backward(Boundary, Tape& tape) {
  const Tensor dx = tape.scratch(tape.restore().shape, context_.dtype);
  Tape::Scope scope(tape);
  const Tensor normed = tape.restore();
  const Tensor whole = enter_gradient(context_, normed, tape);
  const std::int64_t n = whole.rows();
  const int shards = context_.tensor.local_shards();
  const Tensor dwhole = tape.scratch({shards, whole.shape[0], whole.shape[1], width_}, context_.dtype);
  softmax_.backward(whole.reshaped({n, width_}), tape.batch.fields.at(field::targets).reshaped({n}),
                    tape.losses.reshaped({n}), dwhole.reshaped({shards, n, width_}), tape);
  const Tensor dnormed = leave(context_, dwhole, tape);
  if (norm_) norm_->backward(dnormed, {}, dx, tape);
  else context_.backend.copy(dnormed, dx);
  return {dx, {}};
}

}  // namespace mindpipe
