// thorough
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>

#include "trace/causes.h"
#include "trace/levels.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

TEST(ReplaySize, OfSixtyFourRanksWithFiveThousandActionsIsHalfAMinuteAndTwoGibibytes) {
  const MadeRun run = made_run({1, 8, 8, 1}, 832, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  ASSERT_GE(graph.actions(), 64 * 4500);
  std::mt19937_64 random(1);
  Fault fault;
  fault.longer = [&](int, int action) { return graph.rank_of(action) == 9 ? 1.2 : 1.0; };
  const StepTrace trace = trace_of(run, graph, draw_times(run, graph, 10, fault, random));
  const std::clock_t begin = std::clock();
  const ReplayTimes measured = measured_times(trace, graph);
  EXPECT_EQ(compare(trace, graph, replay(graph, measured, 10)).first_off, "");
  const WorkModel model(graph, measured, run.paper);
  const auto levels = levels_of(graph, measured, model);
  const auto causes = causes_of(trace, graph, measured, model, run.paper);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes.front().rank, 9);
  EXPECT_LE(seconds, 30) << "of " << graph.actions() << " actions a step";
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  EXPECT_LE(used.ru_maxrss, 2 << 20) << "KiB";
}

}  // namespace
}  // namespace mindpipe
