#include "layers/bridge.h"

namespace mindpipe {

Boundary Bridge::forward(Boundary in, Tape& tape) {
  const Tensor memory = tape.output_for_all(in.activation.shape, in.activation.dtype);
  if (norm_) norm_->forward(in.activation, tape, memory);
  else context_.backend.copy(in.activation, memory);
  return {embedding_->forward({}, tape).activation, memory};
}

Boundary Bridge::backward(Boundary dout, Tape& tape) {
  embedding_->backward({dout.activation, {}}, tape);
  const Tensor dx = tape.scratch(dout.encoder_output.shape, context_.dtype);
  Tape::Scope scope(tape);
  // The memory's gradient grew in f32 from reader to reader; here it becomes an activation's again.
  const Tensor dmemory = norm_ ? tape.scratch(dx.shape, dx.dtype) : dx;
  context_.backend.convert({dout.encoder_output, dmemory});
  if (norm_) norm_->backward(dmemory, {}, dx, tape);
  return {dx, {}};
}

}  // namespace mindpipe
