#include "runtime/executor.h"

#include "program/check/checker.h"

namespace mindpipe {

Executor::Executor(const RankState& state, Wires wires, const WorkMemory& memory, bool queued)
    : stage_(state.stage),
      backend_(state.stage.context().backend),
      queued_(queued),
      actions_(state, wires, memory),
      host_(actions_, backend_, wires),
      device_(actions_, backend_, wires.waiting) {
  stage_.context().tensor.on_tensor_sum([this](const TensorSum& sum) {
    // Where the device carries them, these would be the times at which they were put in.
    if (running_ != nullptr && !queued_)
      running_->recorder.add({sum.operation, sum.start, sum.end, sum.bytes, running_->computes});
  });
  backend_.on_progress([this] { look_around(); });
  wires.waiting.on_progress([this] { host_.move_others(); });
}

Script Executor::make_closed_script(const PlannedStep& plan, const Outline& outline, Feed& feed,
                                    std::size_t recorded_runs) {
  const int rank = stage_.layout().coord.pipeline;
  CheckedStretch list =
      prove_list({plan.program.ranks[rank], times_on_paper(plan, outline, rank)}, outline, rank);
  Script script(
      outline, &feed, backend_,
      {.closed = true, .recorded = recorded_runs, .at_once = list.actions().size(), .queued = queued_});
  script.extend(std::move(list));
  return prepared(std::move(script));
}

Script Executor::make_open_script(const Outline& outline, Feed& feed, std::size_t at_once) {
  return prepared(Script(outline, &feed, backend_, {.at_once = at_once, .queued = queued_}));
}

Script Executor::prepared(Script script) {
  if (script.device_times) backend_.keep_marks(marks_ += script.device_times->marks());
  return script;
}

void Executor::end(Script& script) {
  recorder(script);
  if (script.device_times) marks_ -= script.device_times->marks();
}

void Executor::run(Feed& feed) {
  const Memory::Closed closed(backend_.memory());
  for (bool is_over = false; !is_over;) {
    const std::int64_t start = now_ns();
    const Turn turn = feed.next();
    is_over = turn.to_drain;
    if (!is_over) run(turn.script, turn.inputs, turn.left);
    else finish(turn.script, turn.inputs);
    if (is_over) feed.drained();
    turn.script.spent.steps += now_ns() - start;
  }
}

void Executor::run(Script& script, StepInputs inputs, Until until, std::size_t left) {
  MP_CHECK(!inputs.empty(), "a list runs without an input");
  if (script.pacer.paces()) backend_.synchronize();
  running_ = &script;
  if (queued_) device_.run(script, inputs, until);
  else host_.run(script, inputs, until, left);
  running_ = nullptr;
}

void Executor::finish(Script& script, StepInputs inputs) {
  run(script, inputs, Until::all_is_over);
  if (!script.closed) recorder(script);
}

const Recorder& Executor::recorder(Script& script) {
  if (script.device_times && script.device_times->open() > 0) backend_.synchronize();
  while (script.device_times && script.device_times->open() > 0) DeviceDriver::take_times(script);
  return script.recorder;
}

const TimeSpent& Executor::spent(Script& script) {
  recorder(script);
  return script.spent;
}

}  // namespace mindpipe
