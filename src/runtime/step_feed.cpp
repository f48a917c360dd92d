#include "runtime/step_feed.h"

#include <algorithm>

namespace mindpipe {
namespace {

/// The steps whose times are held: fewer than a dozen are too few to be replayed and diagnosed.
std::size_t recorded_steps(int shown) {
  constexpr int replayed = 12;
  return static_cast<std::size_t>(shown == 0 ? 1 : std::max(replayed, shown));
}

}  // namespace

StepFeed::StepFeed(Executor& executor, const RankState& state, const Config& config, const RunPlan& plan,
                   LateAnswers& answers)
    : executor_(executor),
      state_(state),
      answers_(answers),
      noise_every_(config.train.noise_every),
      script_(executor.make_closed_script(plan.training, plan.outline, *this,
                                          recorded_steps(config.trace.steps))) {}

std::optional<StepScalars> StepFeed::run(const StepInput& input) {
  input_ = &input;
  state_.updates.measure(noise_every_ > 0 && (input.step + 1) % noise_every_ == 0);
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

void StepFeed::found(const Action&, std::int64_t step, std::int64_t valid, std::span<const Tensor> numbers) {
  answers_.ask(numbers, [this, step, valid](std::span<const double> known) {
    StepScalars scalars{.step = step,
                        .loss = known[Decision::loss],
                        .valid = valid,
                        .gradient_norm = known[Decision::gradient_norm],
                        .applied = valid > 0 && known[Decision::skipped] == 0};
    if (const auto squares = known.subspan(Decision::places); scalars.applied && !squares.empty())
      scalars.noise = gradient_noise(
          squares, static_cast<double>(state_.stage.targets_of_step()) / static_cast<double>(valid),
          state_.stage.layout().batch);
    known_.push_back(scalars);
  });
}

}  // namespace mindpipe
