#include "layers/parallel_block.h"

namespace mindpipe {

std::vector<std::string_view> ParallelBlock::reads() const {
  std::vector<std::string_view> all = branch_->reads();
  for (const std::string_view name : second_->reads()) all.push_back(name);
  return all;
}

Boundary ParallelBlock::forward(Boundary in, Tape& tape) {
  const Tensor x = in.activation, y = tape.output(x.shape, x.dtype);
  Tape::Scope scope(tape);
  const Tensor h = in.normed ? in.normed : norm_.forward(x, tape);
  const SequencePart sequence = sequence_part_of(context_, x);
  context_.backend.residual({.x = x,
                             .branch = branch_->forward(h, in, tape),
                             .dropout = dropout(tape),
                             .sequence = sequence,
                             .y = y});
  const Tensor second = second_->forward(h, in, tape);
  const Dropout dropped = dropout_at(context_, second_dropout_, second_purpose_, tape);
  if (tape.next_norm != nullptr)
    return {y, in.encoder_output,
            tape.next_norm->forward_sum(y, second, {}, dropped, sequence, y, tape, tape.next_normed)};
  context_.backend.residual({.x = y, .branch = second, .dropout = dropped, .sequence = sequence, .y = y});
  return {y, in.encoder_output};
}

Boundary ParallelBlock::backward(Boundary dout, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor dy = dout.activation;
  const Dropout dropped = dropout_at(context_, second_dropout_, second_purpose_, tape);
  Tensor dsecond = dy;
  if (dropped.probability > 0)
    context_.backend.dropout(
        {dy, dropped, sequence_part_of(context_, dy), dsecond = tape.scratch(dy.shape, dy.dtype)});
  const Tensor dh_second = second_->backward(dsecond, dout, tape),
               dh = branch_->backward(branch_gradient(dy, tape), dout, tape);
  context_.backend.add({dh, dh_second, dh});
  norm_.backward(dh, dy, dy, tape);
  return dout;
}

}  // namespace mindpipe
