#include "runtime/step_feed.h"

namespace mindpipe {

StepFeed::StepFeed(Executor& executor, LateAnswers& answers, const RunPlan& plan, std::size_t recorded)
    : executor_(executor),
      answers_(answers),
      script_(executor.make_closed_script(plan.training, plan.outline, *this, recorded)) {}

std::optional<StepScalars> StepFeed::run(const StepInput& input) {
  input_ = &input;
  executor_.run(*this);
  return oldest();
}

std::optional<StepScalars> StepFeed::remaining() {
  if (known_.empty()) answers_.settle();
  return oldest();
}

std::optional<StepScalars> StepFeed::oldest() {
  if (known_.empty()) return std::nullopt;
  const StepScalars oldest = known_.front();
  known_.pop_front();
  return oldest;
}

Turn StepFeed::next() {
  script_.again(input_->step);
  return {.script = script_, .inputs = {input_, 1}, .to_drain = true};
}

/// The step before has come as far as its scalars, so the one before that has ended.
void StepFeed::drained() {
  answers_.settle(1);
  if (script_.device_times && script_.device_times->open() == DeviceTimes::kept)
    DeviceDriver::take_times(script_);
}

void StepFeed::found(const Action&, std::int64_t step, std::int64_t valid, std::span<const Tensor> decision) {
  answers_.ask(decision, [this, step, valid](std::span<const double> numbers) {
    known_.push_back({step, numbers[Decision::loss], valid, numbers[Decision::gradient_norm],
                      valid > 0 && numbers[Decision::skipped] == 0});
  });
}

}  // namespace mindpipe
