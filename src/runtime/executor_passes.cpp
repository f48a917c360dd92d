#include "runtime/executor.h"

// What the compute queue runs: passes and updates, and evaluations.
namespace mindpipe {

/// A buffer's tensors: an activation and perhaps a memory behind it, or their gradients.
Boundary Executor::buffer(int slot, bool gradient) {
  if (slot < 0) return {};
  const BoundaryBytes& bytes = buffer_sizes_[slot];
  const Shape shape = stage_.activation_shape();
  const DType dtype = stage_.context().dtype;
  Arena& arena = buffers_[slot];
  arena.release(0);
  Boundary b;
  b.activation = arena.take(shape, dtype);
  if (gradient ? bytes.memory_gradient > 0 : bytes.memory > 0)
    b.memory = arena.take(shape, gradient ? DType::f32 : dtype);
  return b;
}

void Executor::copy(const Boundary& from, const Boundary& to) {
  Backend& backend = stage_.context().backend;
  backend.copy(from.activation, to.activation);
  if (to.memory) backend.copy(from.memory, to.memory);
}

void Executor::set_micro_batch(Tape& tape, const StepInput& input, int micro_batch) const {
  const Layout& layout = stage_.layout();
  const auto part = [&](const Tensor& t) { return t ? t.at(micro_batch) : Tensor{}; };
  tape.batch = {part(input.tokens), part(input.targets),
                part(input.source), part(input.source_lengths),
                layout.samples,     layout.first_sample(micro_batch),
                input.step};
  tape.loss_factor = 1.0 / static_cast<double>(layout.tokens());
  tape.label_smoothing = input.label_smoothing;
  tape.losses = losses_.at(micro_batch);
}

void Executor::forward(const Action& action) {
  Tape& tape = *slots_[action.slot].tape;
  tape.clear();
  tape.mode = Tape::Mode::train;
  set_micro_batch(tape, *input_, action.micro_batch);
  Boundary in;
  if (action.first > 0) {
    // What arrived moves on to the tape: its buffer is free again for the next message.
    const Boundary arrived = buffer(action.from_slot, false);
    const bool with_memory = stage_.model().blocks()[action.first].memory_in;
    in.activation = tape.output(arrived.activation.shape, arrived.activation.dtype);
    if (with_memory) in.memory = tape.output(arrived.memory.shape, arrived.memory.dtype);
    copy(arrived, in);
  }
  const Boundary out = stage_.forward(action.first, action.last, in, tape);
  if (action.to_slot >= 0) {
    Boundary to = buffer(action.to_slot, false);
    if (!stage_.model().blocks()[action.last].memory_in) to.memory = {};
    copy(out, to);
  }
}

void Executor::backward(const Action& action) {
  Slot& slot = slots_[action.slot];
  Tape& tape = *slot.tape;
  if (action.last == outline_.first_block[action.chunk + 1]) {  // whole, or the first piece
    slot.gradient = {};
    slot.scratch_mark = scratch_.mark();
    tape.weight_gradients =
        action.kind == ActionKind::backward ? Tape::WeightGradients::now : Tape::WeightGradients::later;
    set_micro_batch(tape, *input_, action.micro_batch);
    if (action.from_slot >= 0) {
      slot.gradient = buffer(action.from_slot, true);
      if (!stage_.model().blocks()[action.last].memory_in) slot.gradient.memory = {};
    }
  }
  slot.gradient = stage_.backward(action.first, action.last, slot.gradient, tape);
  if (action.first != outline_.first_block[action.chunk]) return;
  MP_CHECK(tape.saved() == 0, "{} left {} tensors on its tape", to_string(action), tape.saved());
  if (action.to_slot >= 0) {
    Boundary to = buffer(action.to_slot, true);
    if (!stage_.model().blocks()[action.first].memory_in) to.memory = {};
    copy(slot.gradient, to);
  }
  scratch_.release(slot.scratch_mark);
  if (action.kind == ActionKind::backward) tape.clear();
}

void Executor::compute(const Action& action) {
  for (int block = action.first; action.clears && block < action.last; ++block) updates_.clear(block);
  switch (action.kind) {
    case ActionKind::forward:
      forward(action);
      return;
    case ActionKind::backward:
    case ActionKind::backward_input:
      backward(action);
      break;
    case ActionKind::backward_weight: {
      std::vector<const Unit*> units;
      for (int block = action.first; block < action.last; ++block)
        for (int unit : stage_.model().blocks()[block].units) units.push_back(&stage_.unit(unit));
      slots_[action.slot].tape->run_weight_gradients(units);
      break;
    }
    case ActionKind::update:
      for (int block = action.first; block < action.last; ++block) updates_.update(block, input_->rate);
      return;
    default:
      MP_CHECK(false, "the compute queue does not run {}", to_string(action));
  }
  const Layout& layout = stage_.layout();
  const int per_shard = layout.micro_batches() / layout.local_data_shards();
  if ((action.micro_batch + 1) % per_shard != 0) return;
  const auto made = action.kind == ActionKind::backward         ? GradientUpdates::Made::all
                    : action.kind == ActionKind::backward_input ? GradientUpdates::Made::at_once
                                                                : GradientUpdates::Made::later;
  for (int block = action.first; block < action.last; ++block)
    updates_.fold(block, action.micro_batch / per_shard, made);
}

/// Sends or receives a boundary and waits for it.
void Executor::pass_on(const Boundary& b, int peer, bool send) {
  const auto one = [&](const Tensor& t, Payload payload) {
    if (!t) return;
    const auto transfer = send ? wires_.channels->send(peer, channel_of(payload), t)
                               : wires_.channels->receive(peer, channel_of(payload), t);
    wires_.channels->wait(transfer);
  };
  one(b.activation, Payload::activation);
  one(b.memory, Payload::memory);
}

double Executor::evaluate(const StepInput& input, int first_micro_batch, int micro_batches) {
  const int here = stage_.layout().coord.pipeline, chunks = outline_.all_chunks();
  double sum = 0;
  Tape& tape = *slots_[0].tape;
  for (int m = first_micro_batch; m < first_micro_batch + micro_batches; ++m) {
    Boundary between;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (outline_.rank_of(chunk) != here) continue;
      const int first = outline_.first_block[chunk], last = outline_.first_block[chunk + 1];
      const bool from_elsewhere = chunk > 0 && outline_.rank_of(chunk - 1) != here;
      if (chunk == 0 || from_elsewhere) tape.clear();
      tape.mode = Tape::Mode::evaluate;
      set_micro_batch(tape, input, m);
      if (from_elsewhere) {
        between.activation = tape.output(stage_.activation_shape(), stage_.context().dtype);
        between.memory = stage_.model().blocks()[first].memory_in
                             ? tape.output(stage_.activation_shape(), stage_.context().dtype)
                             : Tensor{};
        pass_on(between, outline_.rank_of(chunk - 1), false);
      }
      between = stage_.forward(first, last, between, tape);
      if (chunk + 1 == chunks) {
        std::vector<float> host(tape.losses.count());
        stage_.context().backend.download(tape.losses, host.data());
        for (float loss : host) sum += loss;
      } else if (outline_.rank_of(chunk + 1) != here) {
        if (!stage_.model().blocks()[last].memory_in) between.memory = {};
        pass_on(between, outline_.rank_of(chunk + 1), true);
      }
    }
  }
  tape.clear();
  return sum;
}

}  // namespace mindpipe
