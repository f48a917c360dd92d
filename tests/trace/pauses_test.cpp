#include "trace/pauses.h"

#include <gtest/gtest.h>

#include "trace/made_run.h"

// Times in which no rank was in a step.
namespace mindpipe {
namespace {

constexpr std::int64_t usual = 50'000, longer = 20'000'000;

StepTrace clean_trace() {
  const MadeRun run = made_run({1, 4, 1, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  std::mt19937_64 random(1);
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, 12, {}, random));
  for (RankTimes& rank : trace.ranks) rank.host.assign(trace.steps.size(), {.outside = usual});
  return trace;
}

/// Lets a rank begin a step, and all behind it, later.
void pause(RankTimes& rank, std::size_t step) {
  rank.host[step].outside += longer;
  for (; step < rank.steps.size(); ++step)
    for (Recorder::Times& times : rank.steps[step]) {
      times.start += longer;
      times.end += longer;
    }
}

bool are_equal(const StepTrace& a, const StepTrace& b) {
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    if (a.ranks[rank].host != b.ranks[rank].host) return false;
    for (std::size_t step = 0; step < a.steps.size(); ++step)
      for (std::size_t action = 0; action < a.ranks[rank].steps[step].size(); ++action)
        if (a.ranks[rank].steps[step][action].start != b.ranks[rank].steps[step][action].start ||
            a.ranks[rank].steps[step][action].end != b.ranks[rank].steps[step][action].end)
          return false;
  }
  return true;
}

TEST(Pauses, OfAllRanksAreLeftOut) {
  const StepTrace clean = clean_trace();
  StepTrace paused = clean;
  for (const std::size_t step : {3, 6, 9})
    for (RankTimes& rank : paused.ranks) pause(rank, step);
  leave_out_pauses(paused);
  EXPECT_EQ(paused.pauses, 3);
  EXPECT_EQ(paused.paused, 3 * longer);
  EXPECT_TRUE(are_equal(paused, clean));
}

TEST(Pauses, OfOneRankStay) {
  StepTrace late = clean_trace();
  pause(late.ranks[2], 5);
  const StepTrace before = late;
  leave_out_pauses(late);
  EXPECT_EQ(late.pauses, 0);
  EXPECT_TRUE(are_equal(late, before));
}

TEST(Pauses, BesideEachStepAreUsual) {
  StepTrace trace = clean_trace();
  for (std::size_t step = 1; step < trace.steps.size(); ++step)
    for (RankTimes& rank : trace.ranks) pause(rank, step);
  const StepTrace before = trace;
  leave_out_pauses(trace);
  EXPECT_EQ(trace.pauses, 0);
  EXPECT_TRUE(are_equal(trace, before));
}

}  // namespace
}  // namespace mindpipe
