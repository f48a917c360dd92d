#include "runtime/step_feed.h"

#include <algorithm>

#include "config/sections/run.h"
#include "config/sections/train.h"
#include "runtime/host_counts.h"
#include "state/loss_sums.h"
#include "trace/recorded_steps.h"

namespace mindpipe {
namespace {

/// The actions of a step on all ranks.
std::int64_t actions_of_all_ranks(const RunPlan& plan, const Coord& grid) {
  std::int64_t actions = 0;
  for (const std::vector<Action>& list : plan.training.program.ranks) actions += std::ssize(list);
  return actions * grid.data * grid.tensor;
}

}  // namespace

StepFeed::StepFeed(Executor& executor, const RankState& state, const TrainConfig& train,
                   const TraceConfig& trace, const RunPlan& plan, LateAnswers& answers)
    : executor_(executor),
      state_(state),
      answers_(answers),
      noise_every_(train.noise_every),
      shown_(trace.steps) {
  take(plan);
}

void StepFeed::take(const RunPlan& plan) {
  TimeSpent spent;
  if (script_) {
    executor_.end(*script_);
    spent = script_->spent;
    if (script_->recorder.held() > 0) past_.push_back(*std::move(script_));
  }
  const std::int64_t held = recorded_steps(shown_, actions_of_all_ranks(plan, state_.stage.layout().grid));
  script_.emplace(executor_.make_closed_script(plan.training, plan.outline, *this, held));
  script_->spent = taken_at_ = spent;
  steps_taken_ = 0;
}

StepFeed::SinceTaken StepFeed::since_taken() {
  TimeSpent spent = executor_.spent(*script_);
  for (std::int64_t TimeSpent::*time : {&TimeSpent::forward, &TimeSpent::backward, &TimeSpent::update,
                                        &TimeSpent::scalars, &TimeSpent::wait_tensor, &TimeSpent::steps})
    spent.*time -= taken_at_.*time;
  return {spent, steps_taken_};
}

std::optional<StepScalars> StepFeed::run(const StepInput& input) {
  input_ = &input;
  state_.updates.measure(noise_every_ > 0 && (input.step + 1) % noise_every_ == 0);
  const HostCounts start = host_counts_now();
  executor_.run(*this);
  const HostCounts end = host_counts_now();
  script_->recorder.set_host(counts_between(start, end, ended_ns_));
  ended_ns_ = end.outside;
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
  ++steps_taken_;
  script_->again(input_->step);
  while (!past_.empty() && past_.front().recorder.last_step() + shown_ <= input_->step) past_.pop_front();
  return {.script = *script_, .inputs = {input_, 1}, .to_drain = true};
}

/// The step before has come as far as its scalars, so the one before that has ended.
void StepFeed::drained() {
  const std::vector<UnitArrivals::Arrival> arrivals = state_.residency.arrivals().take();
  for (const UnitArrivals::Arrival& one : arrivals) await_version(answers_, state_.residency.arrivals(), one);
  state_.residency.ended_step();
  answers_.settle(1 + arrivals.size());
  if (script_->device_times && script_->device_times->open() == DeviceTimes::kept)
    DeviceDriver::take_times(*script_);
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
          squares, static_cast<double>(targets_of_step(state_.stage)) / static_cast<double>(valid),
          state_.stage.layout().batch);
    known_.push_back(scalars);
  });
}

}  // namespace mindpipe
