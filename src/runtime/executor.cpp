#include "runtime/executor.h"

#include <algorithm>

namespace mindpipe {

Executor::Executor(Stage& stage, GradientUpdates& updates, const Outline& outline, const PlannedStep& plan,
                   Wires wires, const std::vector<std::size_t>& tapes, std::size_t scratch,
                   std::size_t recorded_steps)
    : stage_(stage),
      updates_(updates),
      wires_(wires),
      outline_(outline),
      list_(plan.program.ranks[stage.layout().coord.pipeline]),
      buffer_sizes_(plan.placement.ranks[stage.layout().coord.pipeline].buffers),
      order_(list_),
      scalars_at_(
          static_cast<int>(std::find_if(list_.begin(), list_.end(),
                                        [](const Action& a) { return a.kind == ActionKind::sum_scalar; }) -
                           list_.begin())),
      ended_(list_.size()),
      answers_(stage.context().backend, wires.waiting, wires.pinned),
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
    buffers_.emplace_back(memory, MemoryClass::boundary,
                          std::max(b.activation + b.memory, b.gradient + b.memory_gradient));
  if (memory.kind() == Memory::Kind::counted)
    for (int i = 0; i < static_cast<int>(list_.size()); ++i) {
      const Span& span = plan.expected.spans[stage.layout().coord.pipeline][i];
      paper_times_.push_back(list_[i].sums > 0 ? plan.network.tensor_time(list_[i]) : span.end - span.start);
    }
  stage.context().tensor.on_tensor_sum([this](const TensorSum& sum) {
    // Where the device carries them, these would be the times at which they were put in.
    if (input_ != nullptr && !wires_.queued) recorder_.add({sum.operation, sum.start, sum.end, sum.bytes});
  });
  const Layout& layout = stage.layout();
  const Shape losses{layout.micro_batches(), layout.samples, layout.sequence};
  losses_arena_ = Arena(memory, MemoryClass::boundary, bytes_for(losses, DType::f32));
  losses_ = losses_arena_.take(losses, DType::f32);

  if (wires_.queued) device_times_.emplace(backend, list_.size());
  std::map<QueueKey, std::size_t> place;
  for (int i = 0; i < static_cast<int>(list_.size()); ++i) {
    const QueueKey key = queue_of(list_[i]);
    if (key.queue == Queue::compute) {
      compute_.actions.push_back(i);
      continue;
    }
    if (wires_.queued) continue;
    const auto [found, fresh] = place.try_emplace(key, others_.size());
    if (fresh) others_.push_back({key, {}, 0, {}});
    others_[found->second].actions.push_back(i);
  }
  backend.on_progress([this] { look_around(); });
  wires_.waiting.on_progress([this] { move_others(); });
}

std::optional<StepScalars> Executor::run(const StepInput& input) {
  const std::int64_t step_start = now_ns();
  recorder_.begin_step(input.step);
  if (!paper_times_.empty()) stage_.context().backend.synchronize();
  input_ = &input;
  if (wires_.queued) walk_in_list_order();
  else walk_by_heads();
  input_ = nullptr;
  const std::optional<StepScalars> known = answers_.due();
  // The step before has come as far as its scalars, so the one before that has ended.
  if (device_times_ && device_times_->open() == DeviceTimes::kept) take_device_times();
  spent_.steps += now_ns() - step_start;
  return known;
}

/// The device's queues carry the messages too: all actions are put there, and events keep them in order.
void Executor::walk_in_list_order() {
  Backend& backend = stage_.context().backend;
  order_.begin_step(backend);
  device_times_->begin_step();
  for (int index = 0; index < static_cast<int>(list_.size()); ++index) {
    const Action& action = list_[index];
    order_.before(backend, index);
    device_times_->before(index, order_.queue(index));
    if (index == scalars_at_) {
      decide();
    } else if (action.queue == Queue::compute) {
      compute(action);
    } else {
      Begun begun{start(action)};
      MP_CHECK(is_done(begun, index), "{} is not carried by the device's queues", to_string(action));
    }
    device_times_->behind(index, order_.queue(index));
    order_.behind(backend, index);
  }
  order_.end_step(backend);
}

bool Executor::is_over() const {
  return compute_.next == compute_.actions.size() &&
         std::all_of(others_.begin(), others_.end(),
                     [](const Line& l) { return l.next == l.actions.size(); });
}

/// The host carries the messages: it starts the head of each queue once what the head comes after has ended.
void Executor::walk_by_heads() {
  std::fill(ended_.begin(), ended_.end(), 0);
  for (Line& line : others_) line.next = 0;
  compute_.next = 0;
  while (!is_over()) {
    move_others();
    if (!ended_[scalars_at_] && may_start(list_[scalars_at_])) {
      run_scalars(scalars_at_);
      ended_[scalars_at_] = 1;
      for (Line& line : others_)
        if (line.next < line.actions.size() && line.actions[line.next] == scalars_at_) ++line.next;
      continue;
    }
    const int index = compute_.next < compute_.actions.size() ? compute_.actions[compute_.next] : -1;
    if (index >= 0 && may_start(list_[index])) {
      run_compute(index);
      ended_[index] = 1, ++compute_.next;
      continue;
    }
    if (is_over()) break;
    const auto ready = [&] {
      move_others();
      return is_over() || (index >= 0 && may_start(list_[index])) ||
             (!ended_[scalars_at_] && may_start(list_[scalars_at_]));
    };
    const std::int64_t start = now_ns();
    const int reason = awaited(index);
    wires_.waiting.until([&] { return ready() || ended_[reason]; }, [&] { return describe_wait(reason); });
    wait_for(list_[reason]) += now_ns() - start;
  }
}

void Executor::decide() {
  updates_.add_uses();
  const std::int64_t valid = updates_.sum_over_data(input_->valid);
  updates_.decide(stage_.has_head() ? losses_ : Tensor{}, valid,
                  1.0 / static_cast<double>(stage_.layout().tokens()), input_->clip);
  answers_.ask(input_->step, valid, updates_.decision());
}

std::int64_t& Executor::work_of(ActionKind kind) {
  return kind == ActionKind::forward      ? spent_.forward
         : kind == ActionKind::update     ? spent_.update
         : kind == ActionKind::sum_scalar ? spent_.scalars
                                          : spent_.backward;
}

/// Messages and sums run beside the compute queue, so what it waits for is not told apart: it is the rest.
void Executor::take_device_times() {
  const std::size_t ago = device_times_->open() - 1;
  const std::vector<Recorder::Times>& times = device_times_->take_oldest();
  for (std::size_t i = 0; i < list_.size(); ++i) {
    recorder_.set(ago, i, times[i]);
    if (order_.queue(static_cast<int>(i)) == compute_queue)
      work_of(list_[i].kind) += times[i].end - times[i].start;
  }
}

Recorder& Executor::recorder() {
  if (device_times_ && device_times_->open() > 0) stage_.context().backend.synchronize();
  while (device_times_ && device_times_->open() > 0) take_device_times();
  return recorder_;
}

const TimeSpent& Executor::spent() {
  recorder();
  return spent_;
}

void Executor::run_scalars(int index) {
  const std::int64_t start = now_ns(), waited = waited_ns();
  recorder_.start(index, start);
  decide();
  if (!paper_times_.empty()) stage_.context().backend.synchronize();
  const std::int64_t end = now_ns();
  recorder_.end(index, end);
  spent_.wait_scalars += waited_ns() - waited;
  spent_.scalars += end - start - (waited_ns() - waited);
}

void Executor::run_compute(int index) {
  const std::int64_t start = now_ns(), waited = waited_ns();
  recorder_.start(index, start);
  compute(list_[index]);
  if (!paper_times_.empty()) {
    stage_.context().backend.synchronize();
    wait_for_sums(index);
  }
  const std::int64_t end = now_ns();
  recorder_.end(index, end);
  const ActionKind kind = list_[index].kind;
  // The only waits inside a pass are those of its tensor sums.
  const std::int64_t inside = waited_ns() - waited;
  spent_.wait_tensor += inside;
  work_of(kind) += end - start - inside;
}

/// Sums of counted memory are empty messages; what they would have taken passes at the end of their pass.
void Executor::wait_for_sums(int index) {
  const std::int64_t until = now_ns() + paper_times_[index];
  if (list_[index].sums > 0)
    wires_.waiting.until([&] { return now_ns() >= until; },
                         [] { return std::string("the time of tensor sums"); });
}

}  // namespace mindpipe
