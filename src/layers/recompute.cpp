#include "layers/recompute.h"

#include <utility>

namespace mindpipe {

Boundary Recompute::forward(Boundary in, Tape& tape) {
  if (!tape.saves()) return block_->forward(in, tape);
  tape.segments().begin_block();
  tape.mode = Tape::Mode::discard;
  tape.next_norm = nullptr;  // what it would keep is not this block's
  const Boundary out = block_->forward(in, tape);
  tape.mode = Tape::Mode::train;
  if (in.encoder_output) tape.save(in.encoder_output);
  tape.save(in.activation);
  return out;
}

Boundary Recompute::backward(Boundary dout, Tape& tape) {
  Boundary in;
  in.activation = tape.restore();
  if (dout.encoder_output) in.encoder_output = tape.restore();
  const std::size_t begin = tape.segments().end_block();
  // Blocks above have gone back; products that were put off may read what they kept.
  if (tape.weight_gradients == Tape::WeightGradients::now) tape.segments().release(begin);
  const std::size_t mark = tape.segments().mark();
  block_->forward(in, tape);
  // A product that is put off would hold all that this pass keeps: none is.
  const auto when = std::exchange(tape.weight_gradients, Tape::WeightGradients::now);
  const Boundary din = block_->backward(dout, tape);
  tape.weight_gradients = when;
  tape.segments().release(mark);
  return din;
}

std::unique_ptr<Layer> recomputed(std::unique_ptr<Layer> layer) {
  if (layer->can_be_recomputed()) return std::make_unique<Recompute>(std::move(layer));
  layer->recompute_candidates();
  return layer;
}

}  // namespace mindpipe
