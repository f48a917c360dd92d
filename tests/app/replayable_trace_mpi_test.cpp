// ranks: 4, alone
// undisturbed: late ranks are blamed
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "app/train/trace_file.h"
#include "config/open_settings.h"
#include "core/check.h"
#include "plan/other_program.h"
#include "runtime/trace_reader.h"
#include "state/layout.h"
#include "trace/diagnosis.h"
#include "trace/made_run.h"

namespace mindpipe {
namespace {

/// A layout of four ranks, and what computes.
struct Traced {
  std::string_view name;
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
  std::vector<Traced> layouts{
      {"both", {1, 2, 2, 1}, ScheduleKind::zero_bubble, 1, 1},
      {"all three", {2, 1, 2, 1}, ScheduleKind::interleaved, 2},
      {"replicas", {1, 4, 1, 1}, ScheduleKind::one_forward_one_backward, 1, 2},
      {"products shared by all", {4, 1, 1, 1}},
      {"a V and replicas", {1, 2, 2, 1}, ScheduleKind::zero_bubble_v, 2, 1},
      {"sums that are folded", {1, 2, 2, 1}, ScheduleKind::breadth_first, 2, 2},
      {"both, computed", {1, 2, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false},
      {"products shared, computed", {2, 1, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false},
  };
  for (const ScheduleKind kind : all_kinds<ScheduleKind>())
    if (const ScheduleRow& row = row_of(kind); !row.of_subnets)
      layouts.push_back({row.name, {1, 1, 4, 1}, kind, row.has_chunks ? 2 : row.chunks()});
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

/// What `replay` says first of a training on four emulated stages, of which this rank is slow in a way.
std::vector<Cause> causes_of_run(const World& world, const std::function<void(Slowness&)>& slow,
                                 const Traced& traced = {"pipeline", {1, 1, 4, 1}}) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("slow_trace." + std::to_string(getppid()) + ".safetensors");
  // Passes of a millisecond, beside which a host that is late counts little.
  const Config config = traced.emulated
                            ? with_settings(config_of(traced), {"model.width=128", "model.context=64"})
                            : config_of(traced);
  Worker worker(config, world);
  worker.waiting().set_crowded(true);
  Slowness slowness(static_cast<std::uint64_t>(world.rank));
  slow(slowness);
  EXPECT_TRUE(worker.executor().slow_down(slowness));
  Corpus corpus(worker.config().data, Subset::train, fields_of(worker.config()), 1);
  for (int step = 0; step < 12; ++step) worker.step(corpus, step, 0, 1e-3);
  EXPECT_TRUE(write_replayable_trace(worker, "", path));
  if (world.rank != 0) return {};
  const StepTrace trace = read_step_trace(path);
  std::filesystem::remove(path);
  return diagnose(trace, ReplayGraph(trace.grid, trace.program), {}, path).causes;
}

TEST(ReplayableTrace, NamesTheRankOrTheLinkThatWasMadeSlow) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  const auto first = [&](const std::function<void(Slowness&)>& slow, const auto& holds) {
    const std::vector<Cause> causes = causes_of_run(world, slow);
    if (world.rank != 0) return;
    ASSERT_FALSE(causes.empty());
    holds(causes.front());
  };
  first(
      [&](Slowness& slowness) {
        if (world.rank == 2) slowness.add(Slowness::Work{.factor = 1.5});
      },
      [](const Cause& cause) {
        EXPECT_EQ(std::pair(cause.kind, cause.rank), std::pair(Cause::slow_rank, 2));
        EXPECT_NEAR(cause.factor, 1.5, 0.02);
      });
  first(
      [&](Slowness& slowness) {
        if (world.rank == 1) slowness.add(Slowness::Work{.from = 3, .every = 3, .factor = 3});
      },
      [](const Cause& cause) {
        EXPECT_EQ(std::pair(cause.kind, cause.rank), std::pair(Cause::sometimes_slow, 1));
        EXPECT_EQ(cause.since, 3);
        EXPECT_NEAR(cause.share, 4.0 / 12, 0.01);
      });
  first(
      [&](Slowness& slowness) {
        if (world.rank == 1) slowness.add(Slowness::Link{.peer = 2, .later_ns = 2'000'000});
        if (world.rank == 2) slowness.add(Slowness::Link{.peer = 1, .later_ns = 2'000'000});
      },
      [](const Cause& cause) {
        EXPECT_EQ(std::tuple(cause.kind, cause.stage, cause.peer), std::tuple(Cause::slow_link, 1, 2));
      });
  first([](Slowness& slowness) { slowness.add(Slowness::MicroBatches{.share = 0.7, .seed = 5}); },
        [](const Cause& cause) { EXPECT_EQ(cause.kind, Cause::micro_batches); });
  // The last stage has the head, so that it may be found slow before its scatter is.
  const std::vector<Cause> scattered = causes_of_run(world, [&](Slowness& slowness) {
    if (world.rank == 3) slowness.add(Slowness::Work{.scatter = 0.4});
  });
  if (world.rank != 0) return;
  EXPECT_TRUE(std::any_of(scattered.begin(), scattered.end(),
                          [](const Cause& cause) { return cause.kind == Cause::jitter && cause.rank == 3; }));
}

TEST(ReplayableTrace, NamesARankThatComputesMoreSlowlyThanItsReplica) {
  World world{MPI_COMM_WORLD, 0, 4};
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  const std::vector<Cause> causes =
      causes_of_run(world,
                    [&](Slowness& slowness) {
                      if (world.rank == 1) slowness.add(Slowness::Work{.factor = 4});
                    },
                    {"both, computed", {1, 2, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false});
  if (world.rank != 0) return;
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(std::pair(causes.front().kind, causes.front().rank), std::pair(Cause::slow_rank, 1));
  EXPECT_GT(causes.front().factor, 2);
}

/// The trace that twelve steps of a configuration leave on a machine whose prices are not those on paper.
StepTrace trace_on_paper(const Config& config, const ChangeOnPaper& truth) {
  const RunPlan known = make_run_plan(config), plan = make_run_plan(config, Purpose::training, {}, 1, truth);
  MadeRun run{.grid = degrees_of(config.grid), .plan = plan.training};
  run.paper = durations_of(run.plan.program, plan.outline, plan.network);
  for (std::size_t stage = 0; stage < run.paper.size(); ++stage)
    for (std::size_t index = 0; index < run.paper[stage].size(); ++index)
      if (const Span& span = run.plan.expected.spans[stage][index];
          is_communication(run.plan.program.ranks[stage][index]))
        run.paper[stage][index] = span.end - span.start;
  std::mt19937_64 random(1);
  const ReplayGraph graph(run.grid, run.plan.program);
  StepTrace trace = trace_of(run, graph, draw_times(run, graph, 12, {}, random));
  trace.paper = durations_of(known.training.program, known.outline, known.network);
  trace.configuration = to_yaml(config);
  trace.hosts.assign(static_cast<std::size_t>(num_ranks(run.grid)), "a");
  return trace;
}

double expected_period(const StepTrace& trace) {
  const ReplayGraph graph(trace.grid, trace.program);
  return static_cast<double>(
      replay(graph, expected_times(measured_times(trace, graph), graph), chained_steps).period());
}

TEST(ReplayableTrace, SaysWhatOtherProgramsTake) {
  const ChangeOnPaper truth = [](Outline& outline, Network& network) {
    for (auto& candidates : outline.blocks)
      for (BlockCost& cost : candidates) {
        cost.forward = cost.forward * 14 / 10;
        for (std::int64_t* time : {&cost.backward, &cost.backward_input, &cost.backward_weight})
          *time = *time * 12 / 10;
      }
    for (UnitCost& unit : outline.units) unit.update *= 2;
    network.message.latency *= 3;
  };
  const Config begun =
      with_settings(config_of({"both", {1, 2, 2, 1}}), {"model.width=128", "model.context=64"});
  const StepTrace trace = trace_on_paper(begun, truth);
  const ReplayGraph graph(trace.grid, trace.program);
  const Diagnosis diagnosis = diagnose(trace, graph, {}, "trace");
  const OtherPrograms others(trace, graph, diagnosis.expected, "trace");
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"schedule.kind=zb-h1"},
                                                   {"schedule.kind=interleaved", "schedule.chunks=2"},
                                                   {"grid.pipeline=4", "grid.data=1"},
                                                   {"train.zero=1"},
                                                   {"train.micro_batch=1"}}) {
    const double true_period = expected_period(trace_on_paper(with_settings(begun, settings), truth));
    const WhatIfResult said = others.expect(settings);
    EXPECT_NEAR(static_cast<double>(said.expected.period) / true_period, 1, 0.05)
        << said.change << ", " << said.note;
  }
  for (const char* setting : {"model.layers=4", "optimizer.kind=sgd", "train.batch=8"})
    EXPECT_THROW(others.expect({setting}), Error) << setting;
}

TEST(ReplayableTrace, HasNoPricesForAGridOfWhichNothingRan) {
  const Config begun =
      config_of({"pipeline", {1, 1, 2, 1}, ScheduleKind::one_forward_one_backward, 1, 0, false});
  StepTrace trace = trace_on_paper(begun, {});
  const auto expect = [&](const std::vector<std::string>& settings) {
    const ReplayGraph graph(trace.grid, trace.program);
    return OtherPrograms(trace, graph, {.period = 1'000'000}, "trace").expect(settings).note;
  };
  trace.is_priced = false;
  try {
    expect({"grid.tensor=2", "grid.pipeline=1"});
    ADD_FAILURE() << "neither tensor sums nor half of a product were measured";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_data);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("the trace says nothing of that grid"),
                                             testing::HasSubstr("exchanged over tensor")));
  }
  EXPECT_THAT(expect({"grid.tensor=2"}), testing::HasSubstr("priced on paper"))
      << "its messages were measured";
  expect({"grid.pipeline=1"});
  trace.is_priced = true;
  expect({"grid.tensor=2", "grid.pipeline=1"});
}

}  // namespace
}  // namespace mindpipe
