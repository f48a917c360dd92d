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

}  // namespace
}  // namespace mindpipe
