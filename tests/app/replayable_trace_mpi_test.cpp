// ranks: 4, alone
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <filesystem>

#include "app/train/trace_file.h"
#include "runtime/trace_reader.h"
#include "trace/diagnosis.h"

namespace mindpipe {
namespace {

/// A layout of four ranks, and what computes.
struct Traced {
  const char* name;
  Coord grid;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int chunks = 1, zero = 0;
  bool emulated = true;
};

Config config_of(const Traced& traced) {
  Config c;
  c.run.dir = "unused";
  c.model.gpt.layers = 8;
  c.model.gpt.width = 64;
  c.model.gpt.heads = 4;
  c.model.gpt.context = 32;
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.grid.pipeline = traced.grid.pipeline;
  c.grid.data = traced.grid.data;
  c.grid.tensor = traced.grid.tensor;
  c.schedule.kind = traced.schedule;
  c.schedule.chunks = traced.chunks;
  c.train.zero = traced.zero;
  c.train.batch = 16;
  c.train.micro_batch = 2;
  if (traced.emulated) {
    c.device.kind = DeviceKind::emulated;
    c.device.description = "core";
  } else c.device.threads = 1;
  return resolve(c);
}

TEST(ReplayableTrace, GivesItsOwnTimesBackOnEveryLayout) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  const std::string path = std::filesystem::temp_directory_path() /
                           ("replayable_trace_mpi_test." + std::to_string(getppid()) + ".safetensors");
  const Traced layouts[] = {
      {"pipeline", {1, 1, 4, 1}},
      {"both", {1, 2, 2, 1}, ScheduleKind::zero_bubble, 1, 1},
      {"all three", {2, 1, 2, 1}, ScheduleKind::interleaved, 2},
      {"replicas", {1, 4, 1, 1}, ScheduleKind::one_forward_one_backward, 1, 2},
      {"both, computed", {1, 2, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false},
      {"products shared, computed", {2, 1, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false},
  };
  for (const Traced& traced : layouts) {
    Worker worker(config_of(traced), world);
    worker.waiting().set_crowded(true);
    Corpus corpus(worker.config().data, Subset::train, fields_of(worker.config()), 1);
    for (int step = 0; step < 6; ++step) worker.step(corpus, step, 0, 1e-3);
    ASSERT_TRUE(write_replayable_trace(worker, "", path)) << traced.name;
    if (world.rank != 0) continue;
    const StepTrace trace = read_step_trace(path);
    std::filesystem::remove(path);
    EXPECT_EQ(trace.steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6})) << traced.name;
    const ReplayGraph graph(trace.grid, trace.program);
    const ReplayTimes times = measured_times(trace, graph);
    EXPECT_EQ(times.violations.count, 0) << traced.name << ": " << times.violations.first;
    const Replayed replayed = replay(graph, times, 6);
    ASSERT_TRUE(replayed.finished) << traced.name;
    const ReplayMatch match = compare(trace, graph, replayed);
    EXPECT_EQ(match.first_off, "") << traced.name;
    EXPECT_EQ(match.measured, match.replayed) << traced.name;
    const bool shares_products = trace.grid.tensor > 1 && !traced.emulated;
    EXPECT_EQ(times.sums_of.back() > 0, shares_products) << traced.name;
    const Diagnosis diagnosis = diagnose(trace, graph, {"kind:forward=1.5"}, path);
    ASSERT_FALSE(diagnosis.levels.empty());
    std::int64_t costs = 0;
    for (const StepLevel& level : diagnosis.levels) costs += level.costs;
    EXPECT_EQ(costs, diagnosis.levels.front().period - diagnosis.levels.back().period) << traced.name;
    EXPECT_GT(diagnosis.changes[0].expected.period, diagnosis.expected.period) << traced.name;
  }
}

}  // namespace
}  // namespace mindpipe
