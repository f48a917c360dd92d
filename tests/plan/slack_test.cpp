#include "plan/slack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

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

/// How long a step takes: the longest path through its lists, found by going over them until no time changes.
/// An action begins when the one before it in its queue and those of its `after` have ended, and a message or
/// a sum when it may on all ranks that have its ticket; it takes what the sender says, or the first of these
/// ranks. `slower`: of each rank, for what its queue of passes
/// computes.
double longest_path(const Program& program, const Durations& durations, const std::vector<double>& slower) {
  const auto computes = [](const Action& action) {
    return action.kind == ActionKind::forward || action.kind == ActionKind::backward ||
           action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight ||
           action.kind == ActionKind::update;
  };
  std::vector<std::vector<double>> ends(program.ranks.size());
  for (std::size_t rank = 0; rank < ends.size(); ++rank) ends[rank].assign(program.ranks[rank].size(), 0);
  std::map<std::int64_t, std::int64_t> together;  // by ticket
  for (std::size_t rank = 0; rank < ends.size(); ++rank)
    for (std::size_t i = 0; i < ends[rank].size(); ++i) {
      const Action& action = program.ranks[rank][i];
      if (action.ticket < 0) continue;
      if (action.kind == ActionKind::send) together[action.ticket] = durations[rank][i];
      else if (action.kind != ActionKind::receive) together.emplace(action.ticket, durations[rank][i]);
    }
  double step = 0;
  for (bool changed = true; changed;) {
    changed = false;
    std::map<std::int64_t, double> begins;  // by ticket
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        // Messages to and from a rank have queues of their own for each kind of payload.
        std::map<std::tuple<Queue, int, Payload, ActionKind, Members>, double> before;
        for (std::size_t i = 0; i < ends[rank].size(); ++i) {
          const Action& action = program.ranks[rank][i];
          const bool is_message = action.kind == ActionKind::send || action.kind == ActionKind::receive;
          double& last = is_message ? before[{action.queue, action.peer, action.payload, action.kind, {}}]
                         : action.queue == Queue::compute ? before[{action.queue, -1, {}, {}, {}}]
                                                          : before[{action.queue, -1, {}, {}, action.group}];
          double begin = last;
          for (const int other : action.after)
            begin = std::max(begin, ends[rank][static_cast<std::size_t>(other)]);
          if (action.ticket >= 0) begin = begins[action.ticket] = std::max(begins[action.ticket], begin);
          const double lasts = static_cast<double>(action.ticket >= 0 ? together[action.ticket]
                                                                      : durations[rank][i]),
                       end = begin + lasts * (computes(action) ? 1 + slower[rank] : 1);
          if (end > ends[rank][i]) {
            ends[rank][i] = end;
            changed = true;
          }
          last = ends[rank][i];
          step = std::max(step, ends[rank][i]);
        }
      }
  }
  return step;
}

TEST(Slack, LengthensNoneOfFortyRandomPlans) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> stages(2, 8), rounds(1, 4), factor(50, 200), kind(0, 2);
  constexpr ScheduleKind kinds[] = {ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                                    ScheduleKind::zero_bubble};
  int with_slack = 0;
  for (int made = 0; made < 40; ++made) {
    Outline outline;
    const int depth = stages(random);
    PlannedStep step = pipeline_of(depth, depth * rounds(random), kinds[kind(random)], outline);
    Durations durations = durations_of(step.program, outline, step.network);
    // The longest path knows no ports: all of a transfer's time is latency here.
    for (Link* link : {&step.network.message, &step.network.data, &step.network.grid})
      link->latency = 1'000'000'000;
    for (auto& list : durations)
      for (std::int64_t& time : list) time = time * factor(random) / 100;
    const std::vector<double> none(static_cast<std::size_t>(depth), 0),
        slack = slack_of(step.program, durations, step.network).of_ranks;
    const double before = longest_path(step.program, durations, none),
                 after = longest_path(step.program, durations, slack);
    EXPECT_EQ(before, static_cast<double>(simulate(step.program, durations, step.network).step)) << made;
    EXPECT_LE(after, 1.003 * before) << made;
    EXPECT_LE(lengthened(step, durations, slack), 0.003) << made;
    // Without advice nothing would be shown.
    with_slack += *std::max_element(slack.begin(), slack.end()) >= 0.01 ? 1 : 0;
    std::vector<double> more = slack;
    for (double& x : more) x = 1.5 * x + 0.02;
    EXPECT_GT(longest_path(step.program, durations, more), 1.003 * before) << made;
  }
  EXPECT_GT(with_slack, 5);
}

}  // namespace
}  // namespace mindpipe
