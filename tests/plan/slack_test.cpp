#include "plan/slack.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/run_plan.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

/// A pipeline of a block a stage.
PlannedStep pipeline_of(int stages, int micro_batches, ScheduleKind kind, Outline& outline) {
  Config config = gpt2_style();
  config.model.gpt.layers = stages;
  config.grid.pipeline = stages;
  config.schedule.kind = kind;
  config.train.micro_batch = 1;
  config.train.batch = micro_batches;
  RunPlan plan = make_run_plan(resolve(config));
  outline = std::move(plan.outline);
  return std::move(plan.training);
}

/// How much longer a step is with its ranks slowed, all together.
double lengthened(const PlannedStep& step, const Durations& durations, const std::vector<double>& slack) {
  const double before = static_cast<double>(simulate(step.program, durations, step.network).step),
               after = static_cast<double>(
                   simulate(step.program, slowed(step.program, durations, slack), step.network).step);
  return after / before - 1;
}

TEST(Slack, LetsAllStagesButTheHeavyOneRunSlower) {
  Outline outline;
  // The way of the first micro-batch in and of the last one out is on nobody's slack: many share it.
  const PlannedStep step = pipeline_of(8, 512, ScheduleKind::one_forward_one_backward, outline);
  Durations durations = durations_of(step.program, outline, step.network);
  for (std::size_t stage = 0; stage < 8; ++stage)
    for (std::size_t i = 0; i < durations[stage].size(); ++i)
      if (is_pass(step.program.ranks[stage][i])) durations[stage][i] = stage == 3 ? 1'500'000 : 1'000'000;
  const Slack slack = slack_of(step.program, durations, step.network);
  for (std::size_t stage = 0; stage < 8; ++stage)
    if (stage == 3) {
      EXPECT_LT(slack.of_ranks[stage], 0.01);
    } else {
      EXPECT_GT(slack.of_ranks[stage], 0.05) << stage;
    }
  EXPECT_LE(lengthened(step, durations, slack.of_ranks), 0.003);
  std::vector<double> more = slack.of_ranks;
  for (double& x : more) x = 1.5 * x + 0.02;
  EXPECT_GT(lengthened(step, durations, more), 0.003) << "more would have been free";
}

TEST(Slack, LengthensNoneOfFortyRandomPlans) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> stages(2, 8), rounds(1, 4), factor(50, 200), kind(0, 2);
  constexpr ScheduleKind kinds[] = {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                    ScheduleKind::zero_bubble};
  for (int made = 0; made < 40; ++made) {
    Outline outline;
    const int depth = stages(random);
    const PlannedStep step = pipeline_of(depth, depth * rounds(random), kinds[kind(random)], outline);
    Durations durations = durations_of(step.program, outline, step.network);
    for (auto& list : durations)
      for (std::int64_t& time : list) time = time * factor(random) / 100;
    EXPECT_LE(lengthened(step, durations, slack_of(step.program, durations, step.network).of_ranks), 0.003)
        << made;
  }
}

}  // namespace
}  // namespace mindpipe
