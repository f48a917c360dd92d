#include "trace/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::HasSubstr;

/// Two stages whose messages take 40 times as long as on paper, and 12 steps of them.
struct SlowLink : testing::Test {
  const MadeRun run = made_run({1, 1, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph{run.grid, run.plan.program};
  StepTrace trace = made();

  StepTrace made() const {
    std::mt19937_64 random(3);
    const Fault fault{.longer = [&](int, int action) { return is_message(graph.at(action)) ? 40.0 : 1.0; }};
    StepTrace slow = trace_of(run, graph, draw_times(run, graph, 12, fault, random));
    slow.hosts = {"a", "b"};
    return slow;
  }
  std::vector<std::string> findings() const {
    return findings_of(diagnose(trace, graph, {}, "a trace"), trace, graph);
  }
};

TEST_F(SlowLink, IsAccusedBesidePricesOfThisMachine) {
  EXPECT_THAT(findings(), testing::Contains(HasSubstr("messages between stages 0 and 1 take 4")));
}

TEST_F(SlowLink, IsNotAccusedBesideADescriptionOfAnotherMachine) {
  trace.is_priced = false;
  EXPECT_THAT(findings(),
              testing::AllOf(testing::Contains(HasSubstr("nobody is slow beside the others")),
                             testing::Not(testing::Contains(HasSubstr("messages between stages 0")))));
}

TEST_F(SlowLink, LeavesCostsWithTheirSigns) {
  Diagnosis diagnosis = diagnose(trace, graph, {}, "a trace");
  diagnosis.levels.at(1).costs = -2'000'000;
  EXPECT_THAT(text_of(diagnosis, trace, graph), HasSubstr("-2.0 ms"));
}

// The first and the last stage of a tied table are neighbours, so its gradients take the slow link, too.
TEST(SlowLinkOfATiedTable, CostsWhatAStepWithoutItTakesLess) {
  const MadeRun run =
      made_run({1, 3, 2, 1}, 8, ScheduleKind::one_forward_one_backward, 1, false, 2, [](Outline& outline) {
        const int last = outline.all_blocks() - 1;
        const int table = static_cast<int>(outline.units.size());
        outline.units.push_back({.values = 4'000'000,
                                 .gradients = 4'000'000,
                                 .update = 100'000,
                                 .blocks = {0, last},
                                 .shared = true});
        for (const int block : {0, last}) outline.units_used[block][0].push_back(table);
      });
  const ReplayGraph graph(run.grid, run.plan.program);
  const auto of_link = [&](int action) {
    const Action& what = graph.at(action);
    return (crosses_cut(what) || what.payload == Payload::unit_gradient) &&
           coord_at(graph.grid(), graph.rank_of(action)).data == 1;
  };
  const Fault fault{.longer = [&](int, int action) { return of_link(action) ? 40.0 : 1.0; }};
  const auto times = [&](const Fault& of) {
    std::mt19937_64 random(3);
    return draw_times(run, graph, 12, of, random);
  };
  const StepTrace trace = trace_of(run, graph, times(fault));
  const std::int64_t costs = replay(graph, times(fault), 12).period() - replay(graph, times({}), 12).period();
  const Diagnosis found = diagnose(trace, graph, {}, "a trace");
  ASSERT_FALSE(found.causes.empty());
  EXPECT_EQ(found.causes[0].kind, Cause::slow_link);
  EXPECT_NEAR(found.causes[0].saves, costs, 0.05 * static_cast<double>(costs));
}

/// What is said of so many steps of which every seventh is slow on rank 3.
std::vector<std::string> said_of_every_seventh(int steps) {
  const MadeRun run = made_run({1, 2, 2, 1}, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  std::mt19937_64 random(4);
  const Fault fault{.longer = [&](int step, int action) {
    return graph.rank_of(action) == 3 && is_work(graph.at(action)) && step % 7 == 2 ? 2.0 : 1.0;
  }};
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, steps, fault, random));
  trace.hosts.assign(4, "a");
  return findings_of(diagnose(trace, graph, {}, "a trace"), trace, graph);
}

TEST(SlowEverySeventhStep, IsAccusedOnAsManyStepsAsAShortListIsHeldFor) {
  EXPECT_THAT(said_of_every_seventh(28), testing::Contains(testing::AllOf(
                                             HasSubstr("rank 3 (stage 1, data 1, tensor 0) computes"),
                                             HasSubstr("in some steps, in 14 % of the steps since step 3"))));
}

TEST(SlowEverySeventhStep, IsSuspectedOnADozen) {
  const std::vector<std::string> said = said_of_every_seventh(12);
  EXPECT_THAT(said,
              testing::Contains(testing::AllOf(
                  HasSubstr("rank 3 (stage 1, data 1, tensor 0) computes"),
                  HasSubstr("in 2 of 12 steps, first in 3: too few to accuse it; a trace of 24 steps"))));
  EXPECT_THAT(said, testing::Not(testing::Contains(HasSubstr("in some steps"))));
}

}  // namespace
}  // namespace mindpipe
