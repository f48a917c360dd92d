// thorough
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "runtime/stored_trace.h"
#include "runtime/trace_reader.h"
#include "trace/diagnosis.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

/// Writes ten steps of 64 ranks of which rank 9 is slow, in a process of its own: what that takes counts for
/// nobody.
void store_large_trace(const std::string& path) {
  const MadeRun run = made_run({1, 8, 8, 1}, 832, ScheduleKind::one_forward_one_backward);
  const ReplayGraph graph(run.grid, run.plan.program);
  std::mt19937_64 random(1);
  Fault fault;
  fault.longer = [&](int, int action) { return graph.rank_of(action) == 9 ? 1.2 : 1.0; };
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, 10, fault, random));
  trace.hosts.assign(trace.ranks.size(), "a");
  for (RankTimes& rank : trace.ranks) rank.host.resize(trace.steps.size());
  store_step_trace(trace, path);
}

TEST(ReplaySize, OfSixtyFourRanksWithFiveThousandActionsKeepsToItsTimeAndTwoGibibytes) {
  const std::string path = testing::TempDir() + "mindpipe_large_" + std::to_string(getpid()) + ".safetensors";
  EXPECT_EXIT((store_large_trace(path), std::exit(0)), testing::ExitedWithCode(0), "");
  const std::clock_t begin = std::clock();
  const StepTrace trace = read_aligned_trace(path);
  std::filesystem::remove(path);
  const ReplayGraph graph(trace.grid, trace.program);
  ASSERT_GE(graph.actions(), 64 * 4500);
  const Diagnosis diagnosis = diagnose(trace, graph, {}, path);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(diagnosis.identity.first_off, "");
  ASSERT_FALSE(diagnosis.causes.empty());
  EXPECT_EQ(diagnosis.causes.front().rank, 9);
  EXPECT_EQ(diagnosis.expected.draws, 50);
  EXPECT_LE(seconds, 30) << "of " << graph.actions() << " actions a step";
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  EXPECT_LE(used.ru_maxrss, 2 << 20) << "KiB";
  std::printf("read, aligned, replayed and diagnosed in %.1f s and %.2f GiB, with %d draws\n", seconds,
              static_cast<double>(used.ru_maxrss) / (1 << 20), diagnosis.expected.draws);
}

}  // namespace
}  // namespace mindpipe
