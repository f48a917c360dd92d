#include "trace/partial_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/made_run.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What is said of a run of which some ranks are missing, and one is slow.
std::string report_without(const std::vector<int>& missing, const Coord& grid, int slow, int steps = 12) {
  const MadeRun run = made_run(grid, 8, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  Fault fault;
  fault.longer = [&](int, int action) {
    return graph.rank_of(action) == slow && !is_communication(graph.at(action)) ? 1.5 : 1.0;
  };
  std::mt19937_64 random(7);
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, steps, fault, random));
  for (const int rank : missing) trace.ranks[rank] = {};
  EXPECT_EQ(missing_ranks(trace), missing);
  return partial_report(trace, graph);
}

TEST(PartialReport, SaysWhichRankIsMissingAndWhoOfTheOthersIsSlow) {
  EXPECT_THAT(report_without({1}, {1, 4, 2, 1}, 5),
              AllOf(HasSubstr("the times of rank 1 (stage 0, data 1, tensor 0) are missing"),
                    HasSubstr("rank 5 (stage 1, data 1, tensor 0) computes 1.50 times as long as its peers"),
                    Not(HasSubstr("rank 1 (stage 0, data 1, tensor 0) computes"))));
  EXPECT_THAT(report_without({3}, {1, 1, 6, 1}, 2),  // a lone replica, beside prices on paper
              HasSubstr("- rank 2 (stage 2, data 0, tensor 0) computes 1.50 times as long"));
}

TEST(PartialReport, NeverAccusesWhoIsMissingNorTheirPeers) {
  for (int slow = -1; slow < 8; ++slow) {
    const std::string said = report_without({std::max(0, slow)}, {1, 4, 2, 1}, slow);
    EXPECT_THAT(said, Not(HasSubstr("times as long"))) << slow;
  }
  // Most ranks of a stage may be missing, and the two that are left are as fast as each other.
  EXPECT_THAT(report_without({1, 2}, {1, 4, 2, 1}, -1), Not(HasSubstr("times as long")));
  EXPECT_THAT(report_without({1, 2}, {1, 4, 2, 1}, 0),
              HasSubstr("rank 0 (stage 0, data 0, tensor 0) computes"));
  // A slow rank that alone is there of its stage has nobody whom it could be compared with.
  EXPECT_THAT(report_without({0}, {1, 2, 2, 1}, 1), Not(HasSubstr("times as long")));
  EXPECT_THAT(report_without({0, 1}, {1, 1, 4, 1}, 3), Not(HasSubstr("times as long")));
}

TEST(PartialReport, AccusesNobodyOnTwoSteps) {
  EXPECT_THAT(report_without({1}, {1, 4, 2, 1}, 5, 2),
              AllOf(HasSubstr("too few"), Not(HasSubstr("times as long"))));
}

}  // namespace
}  // namespace mindpipe
