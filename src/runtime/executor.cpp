#include "runtime/executor.h"

#include <algorithm>

namespace mindpipe {
namespace {

constexpr int payload_number(Payload payload) { return static_cast<int>(payload); }

}  // namespace

Executor::Executor(Stage& stage, Replicas& replicas, const Outline& outline, const PlannedStep& plan, Wires wires,
                   const std::vector<std::size_t>& tapes, std::size_t scratch, std::size_t recorded_steps)
    : stage_(stage),
      replicas_(replicas),
      wires_(wires),
      outline_(outline),
      list_(plan.program.ranks[stage.layout().coord.pipeline]),
      buffer_sizes_(plan.placement.ranks[stage.layout().coord.pipeline].buffers),
      ended_(list_.size()),
      recorder_(list_.size(), recorded_steps) {
  Backend& backend = stage.context().backend;
  Memory& memory = backend.memory();
  scratch_ = Arena(memory, MemoryClass::workspace, scratch);
  slots_.resize(tapes.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].arena = Arena(memory, MemoryClass::activations, tapes[i]);
    slots_[i].tape = std::make_unique<Tape>(backend, slots_[i].arena, scratch_);
  }
  for (const BoundaryBytes& b : buffer_sizes_)
    buffers_.emplace_back(memory, MemoryClass::boundary, std::max(b.activation + b.memory, b.gradient + b.memory_gradient));
  if (memory.kind() == Memory::Kind::counted)
    for (int i = 0; i < static_cast<int>(list_.size()); ++i) {
      const Span& span = plan.expected.spans[stage.layout().coord.pipeline][i];
      paper_times_.push_back(list_[i].sums > 0 ? plan.network.tensor_time(list_[i]) : span.end - span.start);
    }
  stage.context().tensor.on_tensor_sum([this](const TensorSum& sum) {
    if (input_ != nullptr) recorder_.add({sum.operation, sum.start, sum.end, sum.bytes});
  });
  const Layout& layout = stage.layout();
  const Shape losses{layout.micro_batches(), layout.samples, layout.sequence};
  losses_arena_ = Arena(memory, MemoryClass::boundary, bytes_for(losses, DType::f32));
  losses_ = losses_arena_.take(losses, DType::f32);

  std::map<QueueKey, std::size_t> place;
  for (int i = 0; i < static_cast<int>(list_.size()); ++i) {
    const QueueKey key = queue_of(list_[i]);
    if (key.queue == Queue::compute) {
      compute_.actions.push_back(i);
      continue;
    }
    const auto [found, fresh] = place.try_emplace(key, others_.size());
    if (fresh) others_.push_back({key, {}, 0, {}});
    others_[found->second].actions.push_back(i);
  }
  backend.on_progress([this] {
    if (pace_.due()) move_others();
  });
  wires_.waiting.on_progress([this] { move_others(); });
}

bool Executor::may_start(const Action& action) const {
  return std::all_of(action.after.begin(), action.after.end(), [&](int i) { return ended_[i] != 0; });
}

/// All queues but the compute queue, as far as they go without waiting. Called from everywhere, so it does not enter itself.
void Executor::move_others() {
  if (moving_) return;
  moving_ = true;
  if (wires_.channels != nullptr && wires_.channels->under_way() > 0) wires_.channels->progress();
  if (wires_.reductions.under_way() > 0) wires_.reductions.progress();
  if (input_ != nullptr)
    for (Line& line : others_)
      while (advance(line)) {
      }
  moving_ = false;
}

/// One turn of a queue; true if its head ended. The sum of scalars is collective and waits: the main loop runs it.
bool Executor::advance(Line& line) {
  while (begin(line)) {
  }
  if (line.begun.empty() || !is_done(line.begun.front(), line.actions[line.next])) return false;
  const int index = line.actions[line.next++];
  recorder_.end(index, now_ns());
  ended_[index] = 1;
  line.begun.pop_front();
  return true;
}

/// Starts a queue's head, or the one behind it while the head's messages travel: sums and gathers, which end in order and share nothing.
bool Executor::begin(Line& line) {
  const std::size_t at = line.next + line.begun.size(),
                    most = line.key.queue == Queue::group && paper_times_.empty() ? Reductions::parts_ahead : 1;
  if (at == line.actions.size() || line.begun.size() == most) return false;
  const int index = line.actions[at];
  const Action& action = list_[index];
  if (action.kind == Kind::sum_scalar || !may_start(action)) return false;
  // No new part begins while a higher class waits.
  if (is_collective(action) && !wires_.reductions.may_begin(action.kind == Kind::gather ? TrafficClass::values : TrafficClass::gradients))
    return false;
  recorder_.start(index, now_ns());
  line.begun.push_back({start(action)});
  return true;
}

std::vector<std::int64_t> Executor::start(const Action& action) {
  std::vector<std::int64_t> requests;
  switch (action.kind) {
    case Kind::send: {
      const TrafficClass traffic = action.payload == Payload::unit ? TrafficClass::gradients : TrafficClass::pipeline;
      return {wires_.channels->send(action.peer, payload_number(action.payload), payload_of(action), traffic)};
    }
    case Kind::receive:
      return {wires_.channels->receive(action.peer, payload_number(action.payload), payload_of(action))};
    case Kind::reduce:
      for (int block = action.first; block < action.last; ++block)
        for (const Replicas::Root& root : replicas_.roots_of(block)) {
          auto pieces = replicas_.pieces_of(root.unit, root.gradient, action.part, action.parts);
          requests.push_back(replicas_.sharded()
                                 ? wires_.reductions.sum_scatter(std::move(pieces), replicas_.own_piece_of(root, action.part, action.parts))
                                 : wires_.reductions.sum(std::move(pieces)));
        }
      return requests;
    case Kind::gather:
      for (int block = action.first; block < action.last; ++block)
        for (int unit : replicas_.units_updated_by(block))
          requests.push_back(
              wires_.reductions.gather(replicas_.pieces_of(unit, stage_.unit(unit).flat_values(), action.part, action.parts)));
      return requests;
    default:
      MP_CHECK(false, "no queue runs {}", to_string(action));
      return {};
  }
}

/// Messages of counted memory are empty: once all that take part have met, they take as long as the simulator says.
bool Executor::is_done(Begun& begun, int index) {
  const bool message = is_message(list_[index]);
  const bool met = std::all_of(begun.requests.begin(), begun.requests.end(), [&](std::int64_t request) {
    return message ? wires_.channels->done(request) : wires_.reductions.done(request);
  });
  if (!met || paper_times_.empty()) return met;
  if (begun.met_ns == 0) begun.met_ns = now_ns();
  return now_ns() - begun.met_ns >= paper_times_[index];
}

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
  if (gradient ? bytes.memory_gradient > 0 : bytes.memory > 0) b.memory = arena.take(shape, gradient ? DType::f32 : dtype);
  return b;
}

Tensor Executor::payload_of(const Action& action) {
  const int slot = action.kind == Kind::send ? action.slot : action.to_slot;
  switch (action.payload) {
    case Payload::activation:
      return buffer(slot, false).activation;
    case Payload::memory:
      return buffer(slot, false).memory;
    case Payload::gradient:
      return buffer(slot, true).activation;
    case Payload::memory_gradient:
      return buffer(slot, true).memory;
    case Payload::unit:
      return replicas_.shared_part(action.first, action.part, action.parts);
    default:
      MP_CHECK(false, "no message carries {}", to_string(action));
      return {};
  }
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
    tape.weight_gradients = action.kind == Kind::backward ? Tape::WeightGradients::now : Tape::WeightGradients::later;
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
  if (action.kind == Kind::backward) tape.clear();
}

void Executor::compute(const Action& action) {
  for (int block = action.first; action.clears && block < action.last; ++block) replicas_.clear(block);
  switch (action.kind) {
    case Kind::forward:
      forward(action);
      return;
    case Kind::backward:
    case Kind::backward_input:
      backward(action);
      break;
    case Kind::backward_weight: {
      std::vector<const Unit*> units;
      for (int block = action.first; block < action.last; ++block)
        for (int unit : stage_.model().blocks()[block].units) units.push_back(&stage_.unit(unit));
      slots_[action.slot].tape->run_weight_gradients(units);
      break;
    }
    case Kind::update:
      if (scalars_.applied)
        for (int block = action.first; block < action.last; ++block) replicas_.update(block, input_->rate, input_->applied_steps + 1);
      return;
    default:
      MP_CHECK(false, "the compute queue does not run {}", to_string(action));
  }
  const Layout& layout = stage_.layout();
  const int per_shard = layout.micro_batches() / layout.local_data_shards();
  if ((action.micro_batch + 1) % per_shard != 0) return;
  const auto made = action.kind == Kind::backward         ? Replicas::Made::all
                    : action.kind == Kind::backward_input ? Replicas::Made::at_once
                                                          : Replicas::Made::later;
  for (int block = action.first; block < action.last; ++block) replicas_.fold(block, action.micro_batch / per_shard, made);
}

StepScalars Executor::run(const StepInput& input) {
  std::fill(ended_.begin(), ended_.end(), 0);
  for (Line& line : others_) line.next = 0;
  compute_.next = 0;
  const std::int64_t step_start = now_ns();
  recorder_.begin_step(input.step);
  if (!paper_times_.empty()) stage_.context().backend.synchronize();
  input_ = &input;
  const auto scalars_at = static_cast<int>(
      std::find_if(list_.begin(), list_.end(), [](const Action& a) { return a.kind == Kind::sum_scalar; }) - list_.begin());
  const auto over = [&] {
    return compute_.next == compute_.actions.size() &&
           std::all_of(others_.begin(), others_.end(), [](const Line& l) { return l.next == l.actions.size(); });
  };
  while (!over()) {
    move_others();
    if (!ended_[scalars_at] && may_start(list_[scalars_at])) {
      const std::int64_t start = now_ns(), waited = waited_ns();
      recorder_.start(scalars_at, start);
      replicas_.add_uses();
      scalars_ = replicas_.sum_scalars(stage_.has_head() ? losses_ : Tensor{}, input.valid,
                                       1.0 / static_cast<double>(stage_.layout().tokens()), input.clip);
      if (!paper_times_.empty()) stage_.context().backend.synchronize();
      const std::int64_t end = now_ns();
      recorder_.end(scalars_at, end);
      spent_.wait_scalars += waited_ns() - waited;
      spent_.scalars += end - start - (waited_ns() - waited);
      ended_[scalars_at] = 1;
      for (Line& line : others_)
        if (line.next < line.actions.size() && line.actions[line.next] == scalars_at) ++line.next;
      continue;
    }
    const int index = compute_.next < compute_.actions.size() ? compute_.actions[compute_.next] : -1;
    if (index >= 0 && may_start(list_[index])) {
      const std::int64_t start = now_ns(), waited = waited_ns();
      recorder_.start(index, start);
      compute(list_[index]);
      if (!paper_times_.empty()) {
        stage_.context().backend.synchronize();
        wait_for_sums(index);
      }
      const std::int64_t end = now_ns();
      recorder_.end(index, end);
      const Kind kind = list_[index].kind;
      // The only waits inside a pass are those of its tensor sums.
      const std::int64_t inside = waited_ns() - waited;
      spent_.wait_tensor += inside;
      (kind == Kind::forward ? spent_.forward : kind == Kind::update ? spent_.update : spent_.backward) += end - start - inside;
      ended_[index] = 1, ++compute_.next;
      continue;
    }
    if (over()) break;
    const auto ready = [&] {
      move_others();
      return over() || (index >= 0 && may_start(list_[index])) || (!ended_[scalars_at] && may_start(list_[scalars_at]));
    };
    const std::int64_t start = now_ns();
    const int reason = awaited(index, scalars_at);
    wires_.waiting.until([&] { return ready() || ended_[reason]; }, [&] { return describe_wait(reason); });
    wait_for(list_[reason]) += now_ns() - start;
  }
  input_ = nullptr;
  spent_.steps += now_ns() - step_start;
  return scalars_;
}

/// Sums of counted memory are empty messages; what they would have taken passes at the end of their pass.
void Executor::wait_for_sums(int index) {
  const std::int64_t until = now_ns() + paper_times_[index];
  if (list_[index].sums > 0) wires_.waiting.until([&] { return now_ns() >= until; }, [] { return std::string("the time of tensor sums"); });
}

/// Sends or receives a boundary and waits for it.
void Executor::pass_on(const Boundary& b, int peer, bool send) {
  const auto one = [&](const Tensor& t, Payload payload) {
    if (!t) return;
    const auto transfer =
        send ? wires_.channels->send(peer, payload_number(payload), t) : wires_.channels->receive(peer, payload_number(payload), t);
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
        between.memory =
            stage_.model().blocks()[first].memory_in ? tape.output(stage_.activation_shape(), stage_.context().dtype) : Tensor{};
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
