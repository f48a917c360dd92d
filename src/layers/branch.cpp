#include "layers/branch.h"

namespace mindpipe {

Param residual_bias(Unit& unit, const std::string& name, std::int64_t width) {
  return unit.add({{{name + ".bias", width}}, 0, Split::none, Form::rows, {}, false});
}

Tensor NormedBlock::branch_gradient(const Tensor& dsum, Tape& tape, Tensor* dbias_of_sum) {
  const Dropout dropped = dropout(tape);
  Tensor dbranch = dsum;
  if (dropped.probability > 0) {
    dbranch = tape.scratch(dsum.shape, dsum.dtype);
    context_.backend.dropout({dsum, dropped, sequence_part_of(context_, dsum), dbranch});
  }
  if (!bias_) return dbranch;
  if (dbias_of_sum != nullptr && dropped.probability == 0) *dbias_of_sum = bias_.gradient();
  else context_.backend.bias_backward({dbranch, bias_.gradient()});
  return dbranch;
}

Boundary ResidualBlock::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation, y = tape.output(x.shape, x.dtype);
  Tape::Scope scope(tape);
  const Tensor branch = branch_->forward(in.normed ? in.normed : norm_.forward(x, tape), in, tape);
  tape.save(y);
  const SequencePart sequence = sequence_part_of(context_, x);
  if (tape.next_norm != nullptr)
    return {
        y, in.encoder_output,
        tape.next_norm->forward_sum(x, branch, bias(), dropout(tape), sequence, y, tape, tape.next_normed)};
  context_.backend.residual(
      {.x = x, .branch = branch, .bias = bias(), .dropout = dropout(tape), .sequence = sequence, .y = y});
  return {y, in.encoder_output};
}

Boundary ResidualBlock::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  tape.gives_up(tape.restore());  // the norm that read what this block gave has gone back
  Tensor dbias;
  const Tensor dy = dout.activation, dbranch = branch_gradient(dy, tape, &dbias);
  const Tensor dnormed = branch_->backward(dbranch, dout, tape);
  norm_.backward(dnormed, dy, dy, tape, dbias);
  return dout;
}

Boundary PostNormBlock::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation, y = tape.output(x.shape, x.dtype);
  Tape::Scope scope(tape);
  const Tensor branch = branch_->forward(x, in, tape), sum = tape.keep(x.shape, x.dtype);
  norm_.forward_sum(x, branch, bias(), dropout(tape), sequence_part_of(context_, x), sum, tape, y);
  return {y, in.encoder_output};
}

Boundary PostNormBlock::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dx = dout.activation, dsum = tape.scratch(dx.shape, dx.dtype), sum = tape.peek(1);
  norm_.backward(dx, {}, dsum, tape);
  tape.gives_up(sum);
  const Tensor dbranch = branch_gradient(dsum, tape);
  context_.backend.add({dsum, branch_->backward(dbranch, dout, tape), dx});
  return dout;
}

}  // namespace mindpipe
