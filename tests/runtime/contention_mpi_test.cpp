// thorough ranks: 8, alone
// undisturbed: steps are timed
#include <sstream>
#include <tuple>

#include "plan/port_changes.h"
#include "plan/port_costs.h"
#include "runtime/contention.h"
#include "runtime/speed_runs.h"

namespace mindpipe {
namespace {

struct Contention : ::testing::Test {
  const World world = all_ranks();
  const bool all_cells = whole_matrix();
  void SetUp() override {
    if (world.size != 8 && !(world.size == 16 && all_cells)) GTEST_SKIP() << "make test-contention";
  }
  /// A step within 3 % of the simulated one, and idle time within 3 points; twice that beside other tests.
  void expect_as_simulated(const Cell& cell) const {
    const double near = all_cells ? 0.03 : 0.06;
    const Contended found = contended(cell, world, near);
    EXPECT_NEAR(found.measured / found.simulated, 1, near) << cell.name();
    EXPECT_LE(found.idle_off, near) << cell.name();
  }
  static std::vector<std::pair<std::string, int>> schedules() {
    return {{"1f1b", 1}, {"interleaved", 4}, {"breadth-first", 4}, {"elastic", 4}};
  }
};

TEST_F(Contention, ThreeStepsAreMeasuredAsSimulated) {
  if (all_cells) GTEST_SKIP() << "all cells are";
  expect_as_simulated({"breadth-first", 4});
  expect_as_simulated({.schedule = "interleaved", .chunks = 4, .message = 0.1, .zero = 1});
  expect_as_simulated({.schedule = "1f1b", .grid = {1, 2, 2, 2}, .zero = 2, .between_stages = Level::net});
}

TEST_F(Contention, EveryCellIsMeasuredAsSimulated) {
  if (!all_cells) GTEST_SKIP() << "make test-contention";
  for (const auto& [schedule, chunks] : schedules()) {
    if (world.size == 16) {
      expect_as_simulated({.schedule = schedule, .chunks = chunks, .grid = {1, 8, 2, 1}});
      continue;
    }
    for (const double sums : {0.2 * 71.9, 0.28 * 79.9, 0.44 * 102.8})
      for (const double message : {0.02, 0.1})
        expect_as_simulated({.schedule = schedule, .chunks = chunks, .sums = sums, .message = message});
    for (const int zero : {1, 2}) expect_as_simulated({.schedule = schedule, .chunks = chunks, .zero = zero});
    expect_as_simulated(
        {.schedule = schedule, .chunks = chunks, .message = 0.1, .between_stages = Level::net});
    expect_as_simulated({.schedule = schedule, .chunks = chunks, .grid = {1, 2, 2, 2}});
  }
}

/// Lanes of subnets whose messages take a share of a micro-batch's forward.
Config lanes_of(const SpeedRow& row, const std::string& prices, double share) {
  Config config = run_of(row, 8 / row.lanes, prices);
  config.supernet.sampler = row_of(row.sampler).name;
  config.train.steps = 64;
  std::int64_t message = 0;
  for (const BoundaryBytes& cut : make_run_plan(config).outline.cuts)
    message = std::max(message, cut.activation);
  config.device.links.rate = static_cast<double>(message) / (1e-9 * share * static_cast<double>(row.forward));
  return config;
}

/// Trains the subnets. What passes the ports obeys the rule.
MeasuredStream measured_lanes(const Config& config, const SpeedRow& row, const World& world) {
  return measured_stream(config, row, world, config.train.steps, config.seed,
                         [](Worker& worker, bool trained) {
                           std::optional<PaperPorts>& ports = worker.wiring().ports;
                           ASSERT_TRUE(ports);
                           if (!trained) return ports->keep_record();
                           expect_leaves_by_rule(ports->out_record());
                           expect_arrives_by_rule(ports->in_record());
                           if (whole_matrix()) expect_mostly_in_time(ports->out_record());
                           EXPECT_FALSE(ports->out_record().empty());
                         });
}

/// Messages, and moves of units half as long as passes, leave through a rank's one port.
TEST_F(Contention, SubnetsOfLanesAreMeasuredAsSimulated) {
  if (world.size != 8) GTEST_SKIP() << "8 ranks";
  const double near = all_cells ? 0.03 : 0.06;
  std::vector<std::pair<int, double>> cells{{4, 0.1}};
  if (all_cells) cells.insert(cells.end(), {{2, 0.02}, {2, 0.1}, {4, 0.02}});
  for (const auto& [lanes, share] : cells) {
    const SpeedRow row{.table = "equal",
                       .space = "nlp.c0",
                       .sampler = SamplerKind::permutation,
                       .micro_batches = 4,
                       .lanes = lanes,
                       .ratio = 0.5,
                       .window = 16 * lanes,
                       .forward = all_cells ? 10'000'000 : 5'000'000};
    const TableFile prices(row.table, length_of_one(row, world.size / lanes), row.move());
    const MeasuredStream found = measured_lanes(lanes_of(row, prices.path(), share), row, world);
    const auto on_paper = static_cast<double>(found.paper.time + found.paper.until_home);
    const double longer = 1e9 * found.all_home / on_paper - 1,
                 off = found.busy - static_cast<double>(found.paper.busy[world.rank]) / on_paper;
    EXPECT_LE(std::abs(longer), near) << row.name();
    EXPECT_LE(std::abs(off), near) << row.name();
    if (world.rank == 0)
      std::printf("%s, messages %.2f f: %.2f s, simulated %.2f (%+.1f %%); rank 0 works %+.1f points more\n",
                  row.name().c_str(), share, found.all_home, 1e-9 * on_paper, 100 * longer, 100 * off);
  }
}

/// What breadth-first steps take whose sums are folded, beside 1f1b and themselves with sums behind all
/// passes, and with sums in one piece, first come.
TEST_F(Contention, FoldingGivesWhatTheSimulatorSays) {
  if (!all_cells || world.size != 8) GTEST_SKIP() << "make test-contention";
  constexpr double sums[] = {0.2 * 71.9, 0.28 * 79.9, 0.44 * 102.8}, over_1f1b[] = {1.28, 1.35, 1.33},
                   over_unfolded[] = {1.15, 1.24, 1.26};
  for (int share = 0; share < 3; ++share) {
    Cell cell{.schedule = "breadth-first", .chunks = 4, .sums = sums[share]};
    const double folded = contended(cell, world, 0.03).measured;
    cell.folding = Folding::behind_all_passes;
    EXPECT_GE(contended(cell, world, 0.03).measured / folded, over_unfolded[share]);
    cell.folding = Folding::in_one_piece_first_come;
    EXPECT_GE(contended(cell, world, 0, 1).measured / folded, 1.12);
    const Cell behind{.schedule = "1f1b", .sums = sums[share], .folding = Folding::behind_all_passes};
    EXPECT_GE(contended(behind, world, 0.03).measured / folded, over_1f1b[share]);
  }
}

/// A step's gathers stand at its head, before the first forward that reads them: a step is longer for a
/// chunk's alone, and for what the first group's forwards do not hide of the others.
TEST_F(Contention, GathersCostWhatTheFormulaSays) {
  if (world.size != 8) GTEST_SKIP() << "8 ranks";
  const double gathers = 0.15 * 71.9;                                              // forwards of a stage
  std::vector<std::tuple<std::string, int, int>> cells{{"breadth-first", 4, 16}};  // the first group
  if (all_cells) cells.insert(cells.end(), {{"interleaved", 4, 4}, {"breadth-first", 2, 16}});
  for (const auto& [schedule, chunks, group] : cells) {
    const Cell cell{.schedule = schedule, .chunks = chunks, .sums = 2 * gathers, .zero = 1};
    const RunPlan plan = plan_of(cell, config_of(cell));
    const Program& program = plan.training.program;
    Durations free = durations_of(program, plan.outline, plan.network);
    for (const Place& place : program.places())
      if (program.at(place).kind == ActionKind::gather) free[place.rank][place.index] = 0;
    const double without = static_cast<double>(simulate(program, free, plan.network).step),
                 of_chunk = gathers / chunks, hidden = static_cast<double>(group) / chunks,
                 exposed = of_chunk + (chunks - 1) * std::max(0.0, of_chunk - hidden),
                 measured = contended(cell, world, 0.01).measured * 1e6;
    const double forward = static_cast<double>(cell_forward());
    EXPECT_LE((measured - without) / forward, exposed + 0.1 * gathers) << cell.name();
    if (world.rank == 0)
      std::printf("%s: gathers of %.1f f cost %.2f f, %.2f by the formula\n", cell.name().c_str(), gathers,
                  (measured - without) / forward, exposed);
  }
}

/// A configuration of eight blocks on emulated ranks, with the changes of the words.
Config planned_with(const std::string& words) {
  std::vector<std::string> settings{"reproducible.tensor=1",
                                    "reproducible.data=2",
                                    "model.layers=8",
                                    "model.width=384",
                                    "model.heads=6",
                                    "model.context=384",
                                    "data.sequence=384",
                                    "train.micro_batch=1",
                                    "train.batch=16",
                                    fmt::format("trace.steps={}", timed_steps()),
                                    "device.kind=emulated",
                                    "device.description=core",
                                    "data.train=[synthetic:arithmetic]",
                                    "data.validation=[synthetic:arithmetic]"};
  std::istringstream each(words);
  for (std::string word; each >> word;) settings.push_back(word);
  return read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt-tiny.yaml", settings);
}

/// The change that `plan --simulate` recommends, for a plan whose dearest pair is the one that is given and
/// costs two percent of the time or more.
PortChange recommended(const Config& config, const RunPlan& plan, TrafficClass waits, TrafficClass holds) {
  const PortCosts costs = port_costs_of(plan, config);
  const std::vector<PairCost> dear = costs.dear();
  EXPECT_FALSE(dear.empty());
  if (dear.empty()) return {};
  EXPECT_EQ(std::pair(dear[0].waits, dear[0].holds), std::pair(waits, holds));
  EXPECT_GE(50 * dear[0].cost, costs.time);
  PortChanges changes(config);
  for (const PairCost& pair : dear) changes.simulate_for(pair.holds);
  const std::int64_t time = costs.time / costs.count;
  const std::optional<PortChange> change = changes.best(time);
  EXPECT_TRUE(change);
  if (!change) return {};
  EXPECT_LT(change->time, time);
  return *change;
}

/// What a plan says of a change is what its steps then take, whichever traffic holds up which: twelve plans,
/// with the one of lanes below.
TEST_F(Contention, TheChangeThatAPlanRecommendsTakesWhatItSays) {
  if (world.size != 8) GTEST_SKIP() << "8 ranks";
  constexpr TrafficClass messages = TrafficClass::pipeline, sums = TrafficClass::gradients,
                         products = TrafficClass::tensor, gathers = TrafficClass::values;
  struct Held {
    TrafficClass waits, holds;
    std::string words;
  };
  std::vector<Held> plans{{messages, sums,
                           "grid.pipeline=4 grid.data=2 schedule.kind=breadth-first schedule.chunks=4 "
                           "train.batch=8 model.mlp_width=384 device.links.rate=6.4e7"}};
  if (all_cells)
    plans.insert(
        plans.end(),
        {{messages, sums,
          "grid.pipeline=4 grid.data=2 schedule.kind=interleaved schedule.chunks=2 train.batch=8 "
          "model.mlp_width=384 device.links.rate=1.4e7"},
         {messages, products,
          "grid.pipeline=4 grid.tensor=2 grid.data=1 reproducible.tensor=2 train.batch=8 model.mlp_width=384 "
          "device.links.ranks_per_node=1 device.links.rate_between_nodes=6e7"},
         {messages, products,
          "grid.pipeline=2 grid.tensor=2 grid.data=2 reproducible.tensor=2 train.batch=8 model.mlp_width=384 "
          "device.links.ranks_per_node=1 device.links.rate_between_nodes=6e7"},
         {messages, gathers,
          "grid.pipeline=4 grid.data=2 schedule.kind=breadth-first schedule.chunks=4 train.batch=8 "
          "device.links.rate=8e7 train.zero=1"},
         {sums, messages,
          "grid.pipeline=4 grid.data=2 schedule.kind=breadth-first schedule.chunks=2 device.links.rate=3e7"},
         {gathers, messages,
          "grid.pipeline=4 grid.data=2 schedule.kind=breadth-first schedule.chunks=2 device.links.rate=3e7 "
          "train.zero=1"},
         {gathers, messages,
          "grid.pipeline=4 grid.data=2 schedule.kind=breadth-first schedule.chunks=2 device.links.rate=3e7 "
          "train.zero=1 train.batch=32"},
         {sums, messages,
          "grid.pipeline=2 grid.data=4 reproducible.data=4 schedule.kind=interleaved schedule.chunks=4 "
          "device.links.rate=6e7"},
         {products, messages,
          "grid.pipeline=2 grid.tensor=2 grid.data=2 reproducible.tensor=2 schedule.kind=interleaved "
          "schedule.chunks=2 device.links.rate=1e8"},
         {products, messages,
          "grid.pipeline=4 grid.tensor=2 grid.data=1 reproducible.tensor=2 schedule.kind=interleaved "
          "schedule.chunks=4 model.mlp_width=384 device.links.ranks_per_node=1 "
          "device.links.rate_between_nodes=3e8"}});
  for (const auto& [waits, holds, words] : plans) {
    SCOPED_TRACE(words);
    const Config now = planned_with(words);
    const PortChange change = recommended(now, make_run_plan(now), waits, holds);
    Worker worker(planned_with(words + " " + change.words), world);
    const double near = all_cells ? 0.03 : 0.06;
    const Contended found = measured(worker, change.words, world, near);
    EXPECT_NEAR(found.measured, 1e-6 * static_cast<double>(change.time), near * found.simulated);
  }
}

/// Where moves of units are so long that their turns hold up messages, a plan recommends one cut for all
/// subnets.
TEST_F(Contention, TheCutOfLanesThatAPlanRecommendsTakesWhatItSays) {
  if (!all_cells || world.size != 8) GTEST_SKIP() << "make test-contention";
  SpeedRow row{.table = "h200",
               .space = "nlp.c0",
               .sampler = SamplerKind::uniform,
               .micro_batches = 4,
               .lanes = 2,
               .own_cuts = true,
               .ratio = 24,
               .window = 32,
               .forward = 4'000'000};
  const TableFile prices(row.table, length_of_one(row, world.size / row.lanes), row.move());
  const Config now = lanes_of(row, prices.path(), 0.15);
  const PortChange change = recommended(now, make_run_plan(now), TrafficClass::pipeline, TrafficClass::moves);
  ASSERT_EQ(change.words, "supernet.cuts=home");
  row.own_cuts = false;
  const MeasuredStream found = measured_lanes(lanes_of(row, prices.path(), 0.15), row, world);
  const double planned = 1e-9 * static_cast<double>(change.time) * now.train.steps;
  EXPECT_NEAR(found.seconds, planned, 0.03 * planned);
  if (world.rank == 0)
    std::printf("%s: %.2f s, simulated %.2f\n", change.words.c_str(), found.seconds, planned);
}

}  // namespace
}  // namespace mindpipe
