// ranks: 1, thorough ranks: 2 4 8
#include "program/clock/transfer.h"
#include "runtime/styles.h"
#include "runtime/supernet_runs.h"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <map>

// Subnets in flight on every layout have the bits of one after the other.
namespace mindpipe {
namespace {

/// Whether `make test-supernets` asks: 300 subnets of a larger space on every grid; else a choice.
bool asks_all() { return std::getenv("MINDPIPE_ALL_SUBNETS") != nullptr; }

/// The grids of `ranks` ranks.
std::vector<GridConfig> supernet_grids_of(int ranks) {
  std::vector<GridConfig> grids;
  for (const int pipeline : {1, 2, 3, 4, 5, 6, 7, 8})
    for (int data = 1; data <= 2; ++data)
      for (int tensor = 1; tensor <= 2; ++tensor)
        if (pipeline * data * tensor == ranks) grids.push_back({1, pipeline, data, tensor});
  return grids;
}

SupernetCase on_grid(const GridConfig& grid, bool pairs, int number) {
  return {.pipeline = grid.pipeline,
          .data = grid.data,
          .tensor = grid.tensor,
          .precision = number % 3 == 0 ? Precision::bf16 : Precision::f32,
          .optimizer = number % 4 == 0 ? OptimizerKind::sgd : OptimizerKind::adamw,
          .pairs = pairs,
          .tied = number % 5 != 0,
          .sequence_parallel = grid.tensor > 1 && number % 2 == 0,
          .recompute = number % 3 == 1};
}

std::string describe(const SupernetCase& c) {
  return fmt::format("pipeline {}, data {}, tensor {}, {}, {} micro-batches, {}, {}{}{}{}", c.pipeline,
                     c.data, c.tensor, c.pairs ? "pairs" : "texts", 2 * c.micro_batches, name_of(c.precision),
                     name_of(c.optimizer), c.tied ? ", tied" : "", c.sequence_parallel ? ", sequence" : "",
                     c.recompute ? ", recomputed" : "");
}

std::string describe_lanes(const SupernetCase& c) {
  return fmt::format("{} lane{}, {}{}", c.lanes, c.lanes == 1 ? "" : "s", c.own_cuts ? "own cuts, " : "",
                     describe(c));
}

/// Trains on this grid and compares with one after the other; what differs, on the first rank.
std::string compared(const SupernetCase& c, const World& world, int number) {
  const Config config = config_of(c);
  const SubnetsOutcome got = trained(config, world, number);
  return world.rank == 0 ? difference(got, one_after_the_other(config)) : "";
}

TEST(Subnets, HaveTheBitsOfOneAfterTheOtherOnEveryLayout) {
  if (asks_all()) GTEST_SKIP() << "a part of what all are";
  const World world = all_ranks();
  int number = 0;
  for (const bool pairs : {false, true})
    for (const GridConfig& grid : supernet_grids_of(world.size)) {
      ++number;
      SupernetCase c = on_grid(grid, pairs, number);
      c.micro_batches = 1 + number % 2;
      EXPECT_EQ(compared(c, world, 10 * world.size + number), "") << describe(c);
    }
}

// On slow links the sums of windows and of units go in parts of 256 KiB.
TEST(Subnets, OnLanesHaveTheBitsOfOneAfterTheOtherInShortParts) {
  const World world = all_ranks();
  if (world.size != 4 || asks_all()) GTEST_SKIP() << "two lanes of two data ranks";
  Config config = config_of({.data = 2, .subnets = 12, .lanes = 2});
  config.model.supernet.vocabulary = 16384;
  config.device.links = {8, 1e-6, 1e8, 1e-6, 1e8};
  const Outline outline = make_run_plan(config).outline;
  int parts = 0;
  for (int unit = 0; unit < static_cast<int>(outline.units.size()); ++unit)
    parts = std::max(parts, sum_over_data(outline, unit).parts);
  EXPECT_GE(parts, 4);
  const SubnetsOutcome got = trained(config, world, 0);
  if (world.rank == 0) {
    EXPECT_EQ(difference(got, one_after_the_other(config)), "");
  }
}

// A data rank that holds 3, 5, 6, ... logical shards has several roots of the tree over all of them.
TEST(Subnets, OfAnyNumberOfShardsHaveTheBitsOfOneAfterTheOther) {
  if (asks_all()) GTEST_SKIP() << "a part of the choice";
  const World world = all_ranks();
  if (world.size == 1 || world.size > 4) GTEST_SKIP() << "two and four ranks show it";
  Lots lots("shards", world.size);
  std::vector<int> shards_here{3, 6, 5};
  for (int drawn = 0; drawn < 3; ++drawn) shards_here.push_back(7 + lots.below(6));
  int number = 0;
  for (int data = 2; data <= world.size; data *= 2)
    for (const int here : shards_here) {
      SupernetCase c = on_grid({1, world.size / data, data, 1}, number % 2 == 1, number);
      c.data_shards = here * data;
      c.micro_batches = 1 + ++number % 2;
      c.subnets = 24;
      EXPECT_EQ(compared(c, world, 8000 + 10 * world.size + number), "")
          << c.data_shards << " shards, " << describe(c);
    }
}

/// The grids of `ranks` ranks with several lanes, or with own cuts. A `whole` space has blocks for more
/// stages.
std::vector<SupernetCase> cases_with_lanes(int ranks, bool pairs, int number, bool whole = false) {
  std::vector<SupernetCase> cases;
  for (const int lanes : {1, 2, 4})
    for (const GridConfig& grid : supernet_grids_of(ranks / lanes))
      for (const bool own_cuts : {false, true}) {
        if (ranks % lanes != 0 || (lanes == 1 && !own_cuts) ||
            (own_cuts && (grid.pipeline == 1 || grid.pipeline > (whole ? 8 : 4))))
          continue;
        SupernetCase c = on_grid(grid, pairs, ++number);
        c.lanes = lanes;
        c.own_cuts = own_cuts;
        c.micro_batches = 1 + number % 2;
        c.whole = whole;
        cases.push_back(c);
      }
  return cases;
}

TEST(Subnets, OnLanesAndMirrorsHaveTheBitsOfOneAfterTheOther) {
  if (asks_all()) GTEST_SKIP() << "a part of what all are";
  const World world = all_ranks();
  if (world.size == 1) GTEST_SKIP() << "one rank is one lane";
  int number = 0;
  for (const bool pairs : {false, true})
    for (const SupernetCase& c : cases_with_lanes(world.size, pairs, world.size)) {
      ++number;
      EXPECT_EQ(compared(c, world, 5000 + 10 * world.size + number), "") << describe_lanes(c);
    }
}

std::string compared_on_devices(const SupernetCase& c, const World& world, int number, bool queued) {
  const Config config = config_of(c);
  LateDevice late(queued ? Carry(carried_in_order) : Carry());
  const SubnetsOutcome got = trained(config, world, number, watch_of(late));
  return world.rank == 0 ? difference(got, one_after_the_other(config)) : "";
}

TEST(Subnets, OnDevicesBehindTheirHostsHaveTheBitsOfOneAfterTheOther) {
  if (asks_all()) GTEST_SKIP() << "a part of the choice";
  const World world = all_ranks();
  int number = 0;
  for (const bool pairs : {false, true})
    for (const GridConfig& grid : supernet_grids_of(world.size))
      for (const bool queued : {false, true}) {
        SupernetCase c = on_grid(grid, pairs, ++number);
        c.micro_batches = 1 + number % 2;
        c.subnets = 24;
        EXPECT_EQ(compared_on_devices(c, world, 9000 + 10 * world.size + number, queued), "") << describe(c);
      }
}

TEST(Subnets, ThatMoveBetweenDevicesHaveTheBitsOfOneAfterTheOther) {
  if (asks_all()) GTEST_SKIP() << "a part of the choice";
  const World world = all_ranks();
  if (world.size == 1) GTEST_SKIP() << "one rank is one lane";
  int number = 0;
  for (SupernetCase& c : cases_with_lanes(world.size, world.size % 4 == 0, world.size))
    for (const bool queued : {false, true}) {
      ++number;
      c.subnets = 24;
      EXPECT_EQ(compared_on_devices(c, world, 9500 + 10 * world.size + number, queued), "")
          << describe_lanes(c) << (queued ? ", queued" : "");
    }
}

/// On the device that MINDPIPE_TEST_DEVICE names (a GPU that all ranks share), against one rank there.
TEST(Subnets, OnTheDeviceOfTheTestsHaveTheBitsOfOneRank) {
  if (asks_all()) GTEST_SKIP() << "a part of the choice";
  const World world = all_ranks();
  for (const bool has_lanes : {false, true}) {
    SupernetCase c{.pipeline = has_lanes ? 1 : world.size,
                   .precision = has_lanes ? Precision::bf16 : Precision::f32,
                   .subnets = 16,
                   .lanes = has_lanes ? world.size : 1};
    Config config = config_of(c);
    config.device.kind = device_of_tests();
    const SubnetsOutcome got = trained(config, world, 0);
    config.grid = {1, 1, 1, 1};
    const SubnetsOutcome wanted = trained(config, World{MPI_COMM_SELF}, 0);
    if (world.rank == 0) {
      EXPECT_EQ(difference(got, wanted), "") << describe_lanes(c);
    }
  }
}

/// Between two drains a host asks its device how far it has come, and waits for nothing else.
TEST(Subnets, ArePutIntoTheQueuesOfADeviceWithoutAWait) {
  const World world = all_ranks();
  if (world.size > 1) GTEST_SKIP() << "one rank shows it";
  const Config config = config_of({.subnets = 40});
  LateDevice late;
  SupernetWatch watch = watch_of(late);
  std::vector<std::string> halts;
  bool looks = false;
  watch.loaded = [&](const Subnet& subnet, StepInput&) { looks = subnet.id + 1 < config.train.steps; };
  watch.before = [&](Worker&) {
    late.device->on_halt([&](const std::string& call) {
      if (looks && call != "finished") halts.push_back(call);
    });
  };
  trained(config, world, 0, watch);
  EXPECT_THAT(halts, testing::IsEmpty());
}

SupernetCase of_cells_on(const GridConfig& grid, bool pairs, int number) {
  SupernetCase c = on_grid(grid, pairs, number);
  c.micro_batches = 1 + number % 2;
  c.cells = true;
  return c;
}

TEST(Subnets, OfCellsHaveTheBitsOfOneAfterTheOther) {
  if (asks_all()) GTEST_SKIP() << "a part of what all are";
  const World world = all_ranks();
  const std::vector<GridConfig> grids = supernet_grids_of(world.size);
  for (const bool pairs : {false, true}) {
    const int number = world.size + (pairs ? 1 : 0);  // a grid each, another one for pairs
    const SupernetCase c = of_cells_on(grids[static_cast<std::size_t>(number) % grids.size()], pairs, number);
    EXPECT_EQ(compared(c, world, 700 + number), "") << describe(c);
  }
}

TEST(AllSubnets, OfCellsHaveTheBitsOfOneAfterTheOther) {
  if (!asks_all()) GTEST_SKIP() << "make test-supernets runs this";
  const World world = all_ranks();
  int number = 0, passed = 0, failed = 0;
  for (const GridConfig& grid : supernet_grids_of(world.size)) {
    if (grid.pipeline > 5 && grid.pipeline != 8) continue;
    for (const bool pairs : {false, true}) {
      SupernetCase c = of_cells_on(grid, pairs, ++number + world.size);
      c.subnets = 100;
      const std::string differs = compared(c, world, 2000 * world.size + number);
      if (world.rank != 0) continue;
      EXPECT_EQ(differs, "") << describe(c);
      ++(differs.empty() ? passed : failed);
      std::printf("%s cells, %s\n", differs.empty() ? "same bits:" : "OTHER BITS:", describe(c).c_str());
      std::fflush(stdout);
    }
  }
  if (world.rank == 0) std::printf("%d ranks: %d runs passed, %d failed\n", world.size, passed, failed);
}

// Trains a space of 12 blocks with 4 candidates each, one and four micro-batches (of a data shard), on all
// grids of so many ranks whose pipelines have 1, 2, 3, 4, 5 or 8 stages.
TEST(AllSubnets, HaveTheBitsOfOneAfterTheOtherOnEveryLayout) {
  if (!asks_all()) GTEST_SKIP() << "make test-supernets runs this";
  const World world = all_ranks();
  int number = 0, passed = 0, failed = 0;
  for (const GridConfig& grid : supernet_grids_of(world.size)) {
    if (grid.pipeline > 5 && grid.pipeline != 8) continue;
    for (const bool pairs : {false, true})
      for (const int micro_batches : {1, 4}) {
        SupernetCase c = on_grid(grid, pairs, ++number + world.size);
        c.micro_batches = micro_batches;
        c.subnets = 300;
        c.whole = true;
        const auto start = std::chrono::steady_clock::now();
        const std::string differs = compared(c, world, 1000 * world.size + number);
        if (world.rank != 0) continue;
        EXPECT_EQ(differs, "") << describe(c);
        ++(differs.empty() ? passed : failed);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::printf("%s %s (%.1f s)\n", differs.empty() ? "same bits:" : "OTHER BITS:", describe(c).c_str(),
                    took.count());
        std::fflush(stdout);
      }
  }
  if (world.rank == 0) std::printf("%d ranks: %d runs passed, %d failed\n", world.size, passed, failed);
}

// Subnets on lanes, and with cuts of their own, have the bits of one after the other: with several lanes, on
// grids whose lanes have 1, 2, 3, 4, 5 or 8 stages.
TEST(AllSubnets, OnLanesAndMirrorsHaveTheBitsOfOneAfterTheOther) {
  if (!asks_all()) GTEST_SKIP() << "make test-supernets runs this";
  const World world = all_ranks();
  int number = 0, passed = 0, failed = 0;
  for (const bool pairs : {false, true})
    for (SupernetCase c : cases_with_lanes(world.size, pairs, 7 * world.size, true)) {
      if (c.pipeline > 5 && c.pipeline != 8) continue;
      c.subnets = 150;
      const std::string differs = compared(c, world, 7000 * world.size + ++number);
      if (world.rank != 0) continue;
      EXPECT_EQ(differs, "") << describe_lanes(c);
      ++(differs.empty() ? passed : failed);
      std::printf("%s %s\n", differs.empty() ? "same bits:" : "OTHER BITS:", describe_lanes(c).c_str());
      std::fflush(stdout);
    }
  if (world.rank == 0) std::printf("%d ranks: %d runs passed, %d failed\n", world.size, passed, failed);
}

/// How far a run's bits are those of another, by the losses of its first 100 subnets.
bool differs_early(const SubnetsOutcome& one, const SubnetsOutcome& other) {
  const auto early = [](const SubnetsOutcome& outcome) {
    return std::vector(outcome.losses.begin(),
                       outcome.losses.begin() + std::min<std::ptrdiff_t>(100, std::ssize(outcome.losses)));
  };
  return early(one) != early(other);
}

// Where groups read the same weights, or nobody waits for an owner, the order changes the bits, and without
// waits the plan does, too: what the tests above see is no accident.
TEST(Subnets, HaveOtherBitsInEveryOtherOrder) {
  const World world = all_ranks();
  if (world.size == 1) GTEST_SKIP() << "one stage has one order";
  const auto config = [&](ScheduleKind schedule) {
    Config config = config_of(SupernetCase{.pipeline = world.size});
    config.schedule.kind = schedule;
    return config;
  };
  const SubnetsOutcome bulk = trained(config(ScheduleKind::bulk), world, 1),
                       free = trained(config(ScheduleKind::free), world, 1),
                       again = trained(config(ScheduleKind::free), world, 2);
  if (world.rank != 0) return;
  const SubnetsOutcome wanted = one_after_the_other(config(ScheduleKind::causal));
  EXPECT_TRUE(differs_early(bulk, wanted));
  EXPECT_TRUE(differs_early(free, wanted));
  EXPECT_TRUE(differs_early(free, again)) << "two plans";
}

/// The reduced nlp.c3 of configs/spaces, 300 subnets on a pipeline.
Config reduced(int stages, ScheduleKind schedule) {
  Config config = config_of(SupernetCase{.pipeline = stages, .pairs = true, .subnets = 300});
  std::ifstream file(MINDPIPE_SOURCE_DIR "/configs/spaces/nlp-small.yaml");
  config.model.supernet.space = space_from(std::string(std::istreambuf_iterator<char>(file), {}));
  config.model.supernet.width = 32;
  config.train.clip = 1;
  config.schedule.kind = schedule;
  return config;
}

/// A line of the table: subnets a second where every block's forward takes a millisecond, its backward two
/// and a message a hundredth of that, and what slots hold with the rooms that this asks for.
std::string line_of_table(const Config& config, const SubnetsOutcome& outcome) {
  const std::vector<Subnet> subnets = first_of_stream(config);
  const RunPlan plan = make_run_plan(config, Purpose::training, subnets);
  Outline equal = plan.outline;
  for (auto& candidates : equal.blocks)
    for (BlockCost& cost : candidates) {
      cost.forward = 1'000'000;
      cost.backward = 2'000'000;
    }
  Network network;
  network.message.latency = 10'000;
  const RoomsOnPaper paper = choose_rooms(
      equal, network, {.order = order_of(config.schedule.kind), .window = config.supernet.window}, subnets);
  double held = 0, loss = 0;
  for (int stage = 0; stage < equal.stages; ++stage)
    held +=
        static_cast<double>(paper.rules.slots[stage]) * static_cast<double>(plan.subnets->rooms[stage].tape);
  for (std::size_t id = outcome.losses.size() - 50; id < outcome.losses.size(); ++id)
    loss += outcome.losses[id] / 50;
  return fmt::format(
      "{:>6} {:>7} {:>22.1f} {:>20.1f} {:>33.4f}\n", equal.stages, name_of(config.schedule.kind),
      1e9 * static_cast<double>(subnets.size()) / static_cast<double>(paper.time), held / 1024, loss);
}

TEST(SubnetOrders, DifferWithinAHundredSubnetsOnTheReducedSpace) {
  if (!asks_all()) GTEST_SKIP() << "make test-supernets runs this";
  const World world = all_ranks();
  std::map<ScheduleKind, SubnetsOutcome> outcomes;
  for (const ScheduleKind kind : {ScheduleKind::causal, ScheduleKind::bulk, ScheduleKind::free})
    outcomes[kind] = trained(reduced(world.size, kind), world, 1);
  const SubnetsOutcome again = trained(reduced(world.size, ScheduleKind::free), world, 2);
  if (world.rank != 0) return;
  const SubnetsOutcome wanted = one_after_the_other(reduced(world.size, ScheduleKind::causal));
  EXPECT_EQ(difference(outcomes[ScheduleKind::causal], wanted), "");
  EXPECT_TRUE(differs_early(outcomes[ScheduleKind::bulk], wanted));
  EXPECT_TRUE(differs_early(outcomes[ScheduleKind::free], wanted));
  EXPECT_TRUE(differs_early(outcomes[ScheduleKind::free], again)) << "two plans";
  std::string table =
      "stages   order  subnets/s (simulated)  activations in KiB  mean loss of subnets 250 to 299\n";
  for (const auto& [kind, outcome] : outcomes) table += line_of_table(reduced(world.size, kind), outcome);
  std::printf("%s", table.c_str());
}

}  // namespace
}  // namespace mindpipe
