#include "runtime/executor.h"

namespace mindpipe {

Executor::Executor(const RankState& state, Wires wires, const WorkMemory& memory, bool queued, Memory* pinned)
    : stage_(state.stage),
      place_{state.stage.context().backend, wires.waiting, queued, pinned},
      actions_(state, wires, memory),
      host_(actions_, place_.backend, wires.waiting),
      device_(actions_, place_.backend, wires.waiting) {
  stage_.context().tensor.on_tensor_sum([this](const TensorSum& sum) {
    // Where the device carries them, these would be the times at which they were put in.
    if (running_ != nullptr && !place_.queued)
      running_->recorder.add({sum.operation, sum.start, sum.end, sum.bytes});
  });
  place_.backend.on_progress([this] { look_around(); });
  wires.waiting.on_progress([this] { host_.move_others(); });
}

Script Executor::make_script(const PlannedStep& plan, const Outline& outline, std::size_t recorded_steps) {
  return prepared(Script(plan, outline, stage_.layout().coord.pipeline, place_, recorded_steps));
}

Script Executor::make_growing_script(const Outline& outline, std::size_t recorded_stretches,
                                     std::size_t at_once) {
  return prepared(Script(outline, place_, recorded_stretches, at_once));
}

Script Executor::prepared(Script script) {
  if (script.device_times) place_.backend.keep_marks(marks_ += script.device_times->marks());
  return script;
}

std::optional<StepScalars> Executor::run(Script& script, StepInputs inputs, Until until, std::size_t left) {
  MP_CHECK(!inputs.empty(), "a list runs without an input");
  const std::int64_t start = now_ns();
  if (!script.grows) script.recorder.begin_step(inputs.front().step);
  if (script.pacer.paces()) place_.backend.synchronize();
  running_ = &script;
  if (place_.queued) device_.run(script, inputs, until);
  else host_.run(script, inputs, until, left);
  running_ = nullptr;
  const std::optional<StepScalars> known = script.answers.due();
  // The step before has come as far as its scalars, so the one before that has ended.
  if (script.device_times && !script.grows && script.device_times->open() == DeviceTimes::kept)
    DeviceDriver::take_times(script);
  if (script.grows && until == Until::all_is_over) recorder(script);
  script.spent.steps += now_ns() - start;
  return known;
}

const Recorder& Executor::recorder(Script& script) {
  if (script.device_times && script.device_times->open() > 0) place_.backend.synchronize();
  while (script.device_times && script.device_times->open() > 0) DeviceDriver::take_times(script);
  return script.recorder;
}

const TimeSpent& Executor::spent(Script& script) {
  recorder(script);
  return script.spent;
}

}  // namespace mindpipe
