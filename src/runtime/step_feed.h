#pragma once
#include <deque>
#include <optional>

#include "optim/noise_scale.h"
#include "plan/run_plan.h"
#include "runtime/executor.h"
#include "runtime/late_answers.h"

namespace mindpipe {

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
  StepFeed(Executor& executor, const RankState& state, const Config& config, const RunPlan& plan,
           LateAnswers& answers);

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

  Script& script() { return script_; }
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
  int noise_every_;
  Script script_;
  const StepInput* input_ = nullptr;
  std::deque<StepScalars> known_;  ///< scalars that are known and not given back
};

}  // namespace mindpipe
