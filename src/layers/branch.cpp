#include "layers/branch.h"

namespace mindpipe {

Param residual_bias(Unit& unit, const std::string& name, std::int64_t width) {
  return unit.add({{{name + ".bias", width}}, 0, Split::none, Form::rows, {}, false});
}

Boundary ResidualBlock::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation, y = tape.output(x.shape, x.dtype);
  Tape::Scope scope(tape);
  const Tensor branch = branch_->forward(in.normed ? in.normed : norm_.forward(x, tape), in, tape),
               bias = bias_ ? bias_.value() : Tensor{};
  const Dropout dropout = dropout_at(context_, dropout_, purpose_, tape);
  if (tape.next_norm != nullptr)
    return {y, in.encoder_output,
            tape.next_norm->forward_sum(x, branch, bias, dropout, window_of(context_, x), y, tape)};
  context_.backend.residual(
      {.x = x, .branch = branch, .bias = bias, .dropout = dropout, .window = window_of(context_, x), .y = y});
  return {y, in.encoder_output};
}

Boundary ResidualBlock::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dy = dout.activation;
  const Dropout dropout = dropout_at(context_, dropout_, purpose_, tape);
  Tensor dbranch = dy;
  if (dropout.probability > 0) {
    dbranch = tape.scratch(dy.shape, dy.dtype);
    context_.backend.dropout({dy, dropout, window_of(context_, dy), dbranch});
  }
  if (bias_) context_.backend.bias_backward({dbranch, bias_.gradient()});
  const Tensor dnormed = branch_->backward(dbranch, dout, tape);
  norm_.backward(dnormed, dy, dy, tape);
  return dout;
}

}  // namespace mindpipe
