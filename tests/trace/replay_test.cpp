#include "trace/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/made_run.h"
#include "trace/replay_at_ports.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// Grids and schedules, small ones.
std::vector<MadeRun> some_runs() {
  std::vector<MadeRun> runs;
  runs.push_back(made_run({1, 1, 4, 1}, 8, ScheduleKind::one_forward_one_backward));
  runs.push_back(made_run({1, 2, 2, 1}, 4, ScheduleKind::zero_bubble));
  runs.push_back(made_run({1, 2, 2, 1}, 4, ScheduleKind::breadth_first, 2));
  runs.push_back(made_run({2, 2, 2, 1}, 4, ScheduleKind::interleaved, 2));
  runs.push_back(made_run({1, 3, 1, 1}, 4, ScheduleKind::gpipe));
  return runs;
}

TEST(Replay, GivesBackEveryBeginOfEveryRank) {
  std::mt19937_64 random(1);
  for (const MadeRun& run : some_runs()) {
    const ReplayGraph graph(run.grid, run.plan.program);
    const StepTrace trace = trace_of(run, graph, draw_times(run, graph, 6, {}, random));
    const ReplayTimes times = measured_times(trace, graph);
    EXPECT_EQ(times.violations.count, 0) << times.violations.first;
    const Replayed replayed = replay(graph, times, 6);
    ASSERT_TRUE(replayed.finished);
    const ReplayMatch identity = compare(trace, graph, replayed);
    EXPECT_EQ(identity.first_off, "");
    EXPECT_EQ(identity.replayed, identity.measured);
    for (const Counted counted : {Counted::behind_the_first, Counted::all})
      EXPECT_EQ(replayed_period(graph, times, 6, counted), replayed.period(counted));
  }
}

/// Steps in the order of the lists, and steps in the order of events, without transfers that meet at ports.
TEST(Replay, SaysWhatEventsSayInTheirOrder) {
  std::mt19937_64 random(8);
  std::vector<MadeRun> runs = some_runs();
  runs.push_back(made_run({2, 2, 4, 1}, 4, ScheduleKind::zero_bubble));
  for (const MadeRun& run : runs) {
    const ReplayGraph graph(run.grid, run.plan.program);
    ReplayTimes times = draw_times(run, graph, 3, {}, random);
    for (int action = 0; action < graph.actions(); ++action)
      times.sums_of[action + 1] =
          times.sums_of[action] + (run.grid.tensor > 1 && is_pass(graph.at(action)) ? 2 : 0);
    for (ReplayRow& row : times.rows) {
      for (int action = 0; action < graph.actions(); ++action)
        row.eager[action] = sends(graph.at(action)) && random() % 3 == 0;
      for (int sum = 0; sum < times.sums_of.back(); ++sum)
        row.sums.push_back(
            {static_cast<std::int64_t>(random() % 100'000), static_cast<std::int64_t>(random() % 10'000)});
    }
    const StepTrace nothing;
    const std::vector<std::int64_t> no_transfers(graph.actions(), 0);
    const Replayed found = replay(graph, times, 3),
                   known = replay_at_ports({nothing, graph, no_transfers, 0}, times, {}).steps;
    EXPECT_TRUE(known.finished);
    EXPECT_EQ(found.starts, known.starts);
    EXPECT_EQ(found.ends, known.ends);
  }
}

TEST(Replay, LetsSharersOfAProductMeetAtEachOfItsSums) {
  const MadeRun run = made_run({2, 1, 1, 1}, 1, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  ReplayTimes times{.sums_of = {}, .rows = std::vector<ReplayRow>(1), .violations = {}};
  ReplayRow& row = times.rows.front();
  row.lag.assign(graph.actions(), 0);
  row.lasts.assign(graph.actions(), 0);
  row.eager.assign(graph.actions(), 0);
  int forward = 0;
  while (!is_forward(graph.at(forward))) ++forward;
  const int other = graph.sharer(forward, 1);
  for (int action = 0; action <= graph.actions(); ++action)
    times.sums_of.push_back((action > forward ? 2 : 0) + (action > other ? 2 : 0));
  row.sums = {{100, 7}, {1, 5}, {30, 6}, {50, 4}};  // they meet at 100, and at 106 + 50
  row.lasts[forward] = 10;
  row.lasts[other] = 20;
  const Replayed replayed = replay(graph, times, 1);
  EXPECT_EQ(replayed.ends[0][forward], 106 + 50 + 5 + 10);
  EXPECT_EQ(replayed.ends[0][other], 106 + 50 + 4 + 20);
}

TEST(Replay, DoesNotEndWhereActionsWaitForEachOther) {
  MadeRun run = made_run({1, 1, 2, 1}, 4, ScheduleKind::one_forward_one_backward);
  ASSERT_TRUE(ReplayGraph(run.grid, run.plan.program).order().ends);
  run.plan.program.ranks[0].front().after.push_back(static_cast<int>(run.plan.program.ranks[0].size()) - 1);
  const ReplayGraph graph(run.grid, run.plan.program);
  std::mt19937_64 random(7);
  EXPECT_FALSE(replay(graph, draw_times(run, graph, 2, {}, random), 2).finished);
}

TEST(Replay, HasOnePipelineAsTheSimulatorOfPlansHasIt) {
  MadeRun run = made_run({1, 1, 4, 1}, 8, ScheduleKind::one_forward_one_backward);
  run.noise = run.travel = 0;
  run.host = 0;
  for (std::size_t stage = 0; stage < run.paper.size(); ++stage)  // so that nothing meets at ports
    for (std::size_t index = 0; index < run.paper[stage].size(); ++index)
      if (is_communication(run.plan.program.ranks[stage][index])) run.paper[stage][index] = 0;
  std::mt19937_64 random(1);
  const ReplayGraph graph(run.grid, run.plan.program);
  const Replayed replayed = replay(graph, draw_times(run, graph, 1, {}, random), 1);
  Network free;
  EXPECT_EQ(replayed.period(), simulate(run.plan.program, run.paper, free).step);
}

/// What is said where a trace is replayed by another graph than the one that its times were taken apart by.
std::string first_off(const MadeRun& run, const ReplayGraph& other,
                      const std::function<void(ReplayTimes&)>& change) {
  std::mt19937_64 random(2);
  const ReplayGraph graph(run.grid, run.plan.program);
  const StepTrace trace = trace_of(run, graph, draw_times(run, graph, 4, {}, random));
  ReplayTimes times = measured_times(trace, graph);
  change(times);
  return compare(trace, graph, replay(other, times, 4), 100).first_off;
}

TEST(Replay, NamesTheFirstActionThatIsOffWhereSomethingIsLeftOut) {
  const MadeRun run = made_run({1, 2, 2, 1}, 4, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  const auto as_it_is = [](ReplayTimes&) {};
  EXPECT_EQ(first_off(run, graph, as_it_is), "");

  Program without_one = run.plan.program;
  const auto waits =
      std::find_if(without_one.ranks[1].begin(), without_one.ranks[1].end(),
                   [](const Action& action) { return is_forward(action) && action.micro_batch == 0; });
  waits->after.clear();
  EXPECT_THAT(first_off(run, ReplayGraph(run.grid, without_one), as_it_is),
              HasSubstr("forward of micro-batch 0, blocks 2..3 on rank"));

  const ReplayGraph without_members({2, 1, 2, 1}, run.plan.program);
  EXPECT_THAT(first_off(run, without_members, as_it_is), HasSubstr("earlier than measured"));

  EXPECT_THAT(first_off(run, graph,
                        [](ReplayTimes& times) {
                          for (ReplayRow& row : times.rows) row.lag.assign(row.lag.size(), 0);
                        }),
              HasSubstr("in step 1 the"));
}

TEST(Replay, NamesTheFirstStepWhereStepsAreNotChained) {
  const MadeRun run = made_run({1, 2, 2, 1}, 4, ScheduleKind::one_forward_one_backward);
  std::mt19937_64 random(6);
  const ReplayGraph graph(run.grid, run.plan.program);
  const StepTrace trace = trace_of(run, graph, draw_times(run, graph, 4, {}, random));
  const ReplayTimes times = measured_times(trace, graph);
  Replayed apart;
  for (const ReplayRow& row : times.rows) {
    const Replayed one = replay(graph, {.sums_of = times.sums_of, .rows = {row}, .violations = {}}, 1);
    apart.starts.push_back(one.starts.front());
    apart.ends.push_back(one.ends.front());
  }
  EXPECT_THAT(compare(trace, graph, apart, 100).first_off, HasSubstr("in step 2 the"));
}

TEST(Replay, SaysByHowMuchEffectsComeBeforeTheirCauses) {
  const MadeRun run = made_run({1, 1, 2, 1}, 4, ScheduleKind::one_forward_one_backward);
  std::mt19937_64 random(3);
  const ReplayGraph graph(run.grid, run.plan.program);
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, 3, {}, random));
  for (auto& step : trace.ranks[1].steps)
    for (Recorder::Times& action : step) action = {action.start - 7'000'000, action.end - 7'000'000};
  const Violations found = measured_times(trace, graph, 1000).violations;
  EXPECT_GT(found.count, 0);
  EXPECT_NEAR(static_cast<double>(found.worst), 7e6, 1e5);
  EXPECT_THAT(found.first, HasSubstr("on rank"));
}

TEST(Replay, ExpectsTheOddStepsByTheEvenOnes) {
  std::mt19937_64 random(4);
  for (const MadeRun& run : some_runs()) {
    const ReplayGraph graph(run.grid, run.plan.program);
    const StepTrace trace = trace_of(run, graph, draw_times(run, graph, 12, {}, random));
    const ReplayTimes times = measured_times(trace, graph);
    const auto period = [&](const std::vector<int>& rows) {
      return static_cast<double>(replay(graph, expected_times(times, graph, rows), 4).period());
    };
    const double even = period({0, 2, 4, 6, 8, 10}), odd = period({1, 3, 5, 7, 9, 11});
    EXPECT_NEAR(even / odd, 1, 0.01);
    const double plain = static_cast<double>(
        replayed_period(graph, plain_averages(trace, times, graph, {0, 2, 4, 6, 8, 10}), 4));
    EXPECT_GT(plain / odd, run.grid.pipeline > 1 ? 1.02 : 1) << "averages count the waits for others";
    EXPECT_NEAR(even / static_cast<double>(compare(trace, graph, replay(graph, times, 12)).measured), 1,
                0.03);
  }
}

}  // namespace
}  // namespace mindpipe
