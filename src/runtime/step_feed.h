#pragma once
#include <deque>
#include <optional>

#include "optim/noise_scale.h"
#include "plan/run_plan.h"
#include "runtime/executor.h"
#include "runtime/late_answers.h"

namespace mindpipe {

struct TraceConfig;
struct TrainConfig;

/// What a step's scalars say, the same on every rank.
struct StepScalars {
  std::int64_t step = 0;
  double loss = 0;  ///< mean over the valid tokens of the whole batch
  std::int64_t valid = 0;
  double gradient_norm = 0;            ///< norm of the mean gradient, before clipping
  std::optional<GradientNoise> noise;  ///< none: it was not measured
  bool applied =
      true;  ///< false: no valid token, or a loss or gradient that is not finite: the step changes nothing
};

/// Feeds the list of a step, which is run again for each.
class StepFeed : public Feed {
 public:
  StepFeed(Executor& executor, const RankState& state, const TrainConfig& train, const TraceConfig& trace,
           const RunPlan& plan, LateAnswers& answers);

  /// Runs a step. Gives back what is known once it is under way: its own scalars where the host may read the
  /// device's memory; elsewhere those of the step before, for which it waits, so that the host need not wait
  /// for the step that it has just put into the queues, and is never more than two steps ahead.
  std::optional<StepScalars> run(const StepInput& input);
  /// The oldest scalars that were not given back, once they are known; none: all were.
  std::optional<StepScalars> remaining();

  /// Waits for what is under way, whose scalars nobody asks for any more.
  void drop() {
    answers_.settle();
    known_.clear();
  }

  /// Goes on with the list of another plan, between two steps. What was known of the times of older steps
  /// stays.
  void take(const RunPlan& plan);

  Script& script() { return *script_; }
  /// What this rank has spent since it has the present list, and in how many steps.
  struct SinceTaken {
    TimeSpent spent;
    std::int64_t steps = 0;
  };
  SinceTaken since_taken();
  /// What this rank is known to have spent since its beginning, with all lists: of a device that runs behind
  /// the host without the newest steps.
  const TimeSpent& spent() const { return script_->spent; }
  /// Lists before the present one that ran in one of the last steps that are shown, the oldest first.
  const std::deque<Script>& past() const { return past_; }
  Turn next() override;
  void drained() override;
  const StepInput& bring(const Action&) override { return *input_; }
  void found(const Action& by, std::int64_t step, std::int64_t valid,
             std::span<const Tensor> numbers) override;

 private:
  std::optional<StepScalars> oldest();

  Executor& executor_;
  RankState state_;
  LateAnswers& answers_;
  int noise_every_, shown_;
  std::optional<Script> script_;
  std::deque<Script> past_;
  TimeSpent taken_at_;            ///< spent when the present list was taken
  std::int64_t steps_taken_ = 0;  ///< steps since then
  const StepInput* input_ = nullptr;
  std::int64_t ended_ns_ = 0;      ///< when the step before had ended; 0: there was none
  std::deque<StepScalars> known_;  ///< scalars that are known and not given back
};

}  // namespace mindpipe
