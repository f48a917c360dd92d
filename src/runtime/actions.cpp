#include "runtime/actions.h"

namespace mindpipe {
namespace {

constexpr int channel_of(Payload payload) { return static_cast<int>(payload); }

}  // namespace

Actions::Actions(Stage& stage, GradientUpdates& updates, Wires wires, const PassMemory& sizes)
    : stage_(stage), updates_(updates), wires_(wires), arenas_(sizes.tapes.size()) {
  Backend& backend = stage.context().backend;
  Memory& memory = backend.memory();
  scratch_ = Arena(memory, MemoryClass::workspace, sizes.scratch);
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    arenas_[i].arena = Arena(memory, MemoryClass::activations, sizes.tapes[i]);
    arenas_[i].tape = std::make_unique<Tape>(backend, arenas_[i].arena, scratch_);
  }
  for (std::size_t bytes : sizes.buffers) buffers_.emplace_back(memory, MemoryClass::boundary, bytes);
  losses_arena_ = Arena(memory, MemoryClass::boundary, bytes_for(stage.losses_shape(), DType::f32));
  losses_ = losses_arena_.take(stage.losses_shape(), DType::f32);
}

Request Actions::start_of_subnet(const Action& action, const StepInput& input) {
  const auto message = [&] { return subnets_->message_of(action); };
  switch (action.kind) {
    case ActionKind::forward:
      subnets_->forward(action, input);
      return {};
    case ActionKind::backward:
      subnets_->backward(action, input);
      return {};
    case ActionKind::update:
      subnets_->update(action, input);
      return {};
    case ActionKind::reduce:
      return {Request::reductions, subnets_->reduce(wires_.reductions, action, input)};
    case ActionKind::send:
      return {Request::channels,
              wires_.channels->send(action.peer, channel_of(action.payload), message(), class_of(action))};
    case ActionKind::receive:
      return {Request::channels,
              wires_.channels->receive(action.peer, channel_of(action.payload), message())};
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::gather:
    case ActionKind::sum_scalar:
      break;
  }
  fail(Exit::internal, "{} in the list of a supernet", to_string(action));
}

Request Actions::start(Script& script, const Action& action, const StepInput& input) {
  if (script.grows && script.trains() && subnets_ != nullptr) return start_of_subnet(action, input);
  switch (action.kind) {
    case ActionKind::forward:
      if (script.trains()) forward(action, input);
      else forward_alone(action);
      return {};
    case ActionKind::backward:
    case ActionKind::backward_input:
      backward(script, action, input);
      return {};
    case ActionKind::backward_weight:
      backward_weight(action);
      fold(script, action);
      return {};
    case ActionKind::update:
      updates_.update(action.unit, input.rate);
      return {};
    case ActionKind::sum_scalar:
      sum_scalars(script, input);
      return {};
    case ActionKind::send:
      return {Request::channels, wires_.channels->send(action.peer, channel_of(action.payload),
                                                       message_of(action), class_of(action))};
    case ActionKind::receive:
      return {Request::channels,
              wires_.channels->receive(action.peer, channel_of(action.payload), message_of(action))};
    case ActionKind::reduce:
      return {Request::reductions,
              updates_.reduce(wires_.reductions, {action.unit, action.first}, action.part, action.parts)};
    case ActionKind::gather:
      return {Request::reductions,
              updates_.gather(wires_.reductions, action.unit, action.part, action.parts)};
  }
  fail(Exit::internal, "an action of no kind");
}

void Actions::ended(const Script& script, const Action& action) {
  if (is_move(action) && !sends(action) && script.trains()) subnets_->arrived(action);
}

bool Actions::is_done(const Request& request) const {
  switch (request.carrier) {
    case Request::nobody:
      return true;
    case Request::channels:
      return wires_.channels->done(request.number);
    case Request::reductions:
      return wires_.reductions.done(request.number);
  }
  return true;
}

void Actions::progress() {
  if (wires_.channels != nullptr && wires_.channels->under_way() > 0) wires_.channels->progress();
  if (wires_.reductions.under_way() > 0) wires_.reductions.progress();
  if (subnets_ != nullptr) subnets_->progress();
  if (forwards_.progress) forwards_.progress();
}

/// Whose part is missing is said in ranks of the job, so no other ranks stand here.
std::string Actions::describe(const Script& script, const Action& action) {
  if (!script.trains()) {
    const std::string what{is_message(action) ? name_of(action.payload) : name_of(action.kind)};
    return fmt::format("{} of micro-batch {} of batch {} in line", what, action.micro_batch,
                       action.subnet + 1);
  }
  if (is_move(action))
    return fmt::format("the state of {} unit{}{}", action.units.size(), action.units.size() == 1 ? "" : "s",
                       of_subnet(action));
  if (action.payload == Payload::unit_gradient)
    return fmt::format("the gradient of unit {} in block {}{}", action.unit, action.first, of_subnet(action));
  if (!is_message(action)) return to_string(action);
  return fmt::format("{} of micro-batch {}{}", name_of(action.payload), action.micro_batch,
                     of_subnet(action));
}

std::string Actions::describe(const Script& script, const Action& action, const Request& request) const {
  std::string text = describe(script, action);
  if (is_done(request)) return text;
  switch (request.carrier) {
    case Request::nobody:
      break;
    case Request::channels:
      return text + ", " + wires_.channels->describe(request.number);
    case Request::reductions:
      return text + ", " + wires_.reductions.describe(request.number);
  }
  return text;
}

std::int64_t Actions::bytes_of(const Action& action) const {
  switch (action.kind) {
    case ActionKind::reduce:
      return updates_.sent_by_reduce({action.unit, action.first}, action.part, action.parts);
    case ActionKind::gather:
      return updates_.sent_by_gather(action.unit, action.part, action.parts);
    case ActionKind::send:
    case ActionKind::receive:
      if (!crosses_cut(action) && !is_move(action))
        return static_cast<std::int64_t>(exchanged(action).bytes());
      return action.bytes;
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::backward_input:
    case ActionKind::backward_weight:
    case ActionKind::update:
    case ActionKind::sum_scalar:
      return action.bytes;
  }
  return action.bytes;
}

void Actions::sum_scalars(Script& script, const StepInput& input) {
  const Tensor losses = stage_.has_head() ? losses_ : Tensor{};
  updates_.add_uses();
  const std::int64_t valid = updates_.sum_over_data(input.valid);
  updates_.clip_and_scale(losses, valid, 1.0 / static_cast<double>(stage_.targets_of_step()));
  script.answers.ask(input.step, valid, updates_.decision());
}

/// The tensors of a buffer for what crosses the cut before block `cut`: an activation and perhaps an
/// encoder's output behind it, or their gradients.
Boundary Actions::buffer(int number, int cut, bool gradient) {
  if (number < 0) return {};
  const Stage::Entering shapes = stage_.before(cut);
  const DType dtype = stage_.context().dtype;
  Arena& arena = buffers_[number];
  arena.release(0);
  Boundary b;
  b.activation = arena.take(shapes.activation, dtype);
  if (shapes.memory.rank > 0) b.encoder_output = arena.take(shapes.memory, gradient ? DType::f32 : dtype);
  return b;
}

Tensor Actions::message_of(const Action& action) {
  if (action.payload == Payload::unit_gradient) return exchanged(action);
  const int number = sends(action) ? action.from_buffer : action.to_buffer;
  const Boundary b = buffer(number, action.first, !travels_forward(action.payload));
  const bool encoded =
      action.payload == Payload::encoder_output || action.payload == Payload::encoder_output_gradient;
  return encoded ? b.encoder_output : b.activation;
}

void Actions::copy(const Boundary& from, const Boundary& to) {
  Backend& backend = stage_.context().backend;
  backend.copy(from.activation, to.activation);
  if (to.encoder_output) backend.copy(from.encoder_output, to.encoder_output);
}

void Actions::set_micro_batch(Tape& tape, const StepInput& input, int micro_batch) const {
  const Layout& layout = stage_.layout();
  tape.batch = {input.fields.part(micro_batch), layout.samples, layout.first_sample(micro_batch), input.step,
                input.choice};
  tape.batch.calibrated = input.calibrated + (input.mode == Tape::Mode::calibrate ? micro_batch : 0);
  tape.loss_factor = 1.0 / static_cast<double>(stage_.targets_of_step());
  tape.losses = losses_.at(micro_batch);
}

void Actions::forward(const Action& action, const StepInput& input) {
  Tape& tape = *arenas_[action.tape].tape;
  tape.clear();
  tape.mode = Tape::Mode::train;
  set_micro_batch(tape, input, action.micro_batch);
  tape.hits = {};
  Boundary in;
  if (action.first > 0) {  // what arrived moves on to the tape: its buffer is free for the next message
    const Boundary arrived = buffer(action.from_buffer, action.first, false);
    in.activation = tape.output(arrived.activation.shape, arrived.activation.dtype);
    if (arrived.encoder_output)
      in.encoder_output = tape.output(arrived.encoder_output.shape, arrived.encoder_output.dtype);
    copy(arrived, in);
  }
  const Boundary out = stage_.forward(action.first, action.last, in, tape);
  if (action.to_buffer >= 0) copy(out, buffer(action.to_buffer, action.last, false));
}

/// A forward behind which nothing comes back.
void Actions::forward_alone(const Action& action) {
  Tape& tape = *arenas_[action.tape].tape;
  const StepInput& input = forwards_.load(action);
  tape.clear();
  tape.mode = input.mode;
  set_micro_batch(tape, input, action.micro_batch);
  tape.hits = updates_.scalars().hits();
  const Boundary in = action.first > 0 ? buffer(action.from_buffer, action.first, false) : Boundary{};
  const Boundary out = stage_.forward(action.first, action.last, in, tape);
  if (action.to_buffer >= 0) copy(out, buffer(action.to_buffer, action.last, false));
  tape.clear();
  const bool at_end = action.last == static_cast<int>(stage_.model().blocks().size()) &&
                      action.micro_batch + 1 == stage_.layout().micro_batches();
  if (at_end) forwards_.told(action, losses_);
}

void Actions::backward(const Script& script, const Action& action, const StepInput& input) {
  if (action.clears)
    for (const UnitUse& use : script.outline.uses_in(action.first, action.last)) updates_.clear(use);
  TapeArena& arena = arenas_[action.tape];
  Tape& tape = *arena.tape;
  if (action.last == script.outline.first_block[action.chunk + 1]) {  // whole, or the first piece
    arena.gradient = {};
    arena.scratch_mark = scratch_.mark();
    tape.weight_gradients =
        makes_gradients(action) ? Tape::WeightGradients::now : Tape::WeightGradients::later;
    set_micro_batch(tape, input, action.micro_batch);
    if (action.from_buffer >= 0) arena.gradient = buffer(action.from_buffer, action.last, true);
  }
  arena.gradient = stage_.backward(action.first, action.last, arena.gradient, tape);
  if (action.first == script.outline.first_block[action.chunk]) {
    MP_CHECK(tape.saved() == 0, "{} left {} tensors on its tape", to_string(action), tape.saved());
    if (action.to_buffer >= 0) copy(arena.gradient, buffer(action.to_buffer, action.first, true));
    scratch_.release(arena.scratch_mark);
    if (makes_gradients(action)) tape.clear();
  }
  fold(script, action);
}

void Actions::backward_weight(const Action& action) {
  std::vector<const Unit*> units;
  for (int block = action.first; block < action.last; ++block)
    for (int unit : stage_.model().blocks()[block].units) units.push_back(&stage_.unit(unit));
  arenas_[action.tape].tape->run_weight_gradients(units);
}

/// At the end of a data shard the gradients that a backward has completed go to the binary counter.
void Actions::fold(const Script& script, const Action& action) {
  const int of_shard = script.outline.micro_batches_of_shard();
  if ((action.micro_batch + 1) % of_shard != 0) return;
  for (const UnitUse& use : script.outline.uses_in(action.first, action.last))
    updates_.fold(use, action.micro_batch / of_shard, pass_of(action)->makes);
}

}  // namespace mindpipe
