// thorough ranks: 2 4 8, alone
#include <cstdlib>
#include <limits>

#include "runtime/checkpoints.h"
#include "runtime/drawn_moves.h"
#include "runtime/parity_compare.h"

// Runs whose blocks change their stage while they train have the bits of runs whose blocks never do.
namespace mindpipe {
namespace {

constexpr int all_steps = 60, every = 5;

/// What differs between runs, beside the model.
struct Kind {
  Style style;
  GridConfig grid;
  int tensor = 1, data = 1;  ///< logical shards
  int zero = 0;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  Precision precision = Precision::f32;
  OptimizerKind optimizer = OptimizerKind::adamw;
  ChosenBlocks recompute = WhichBlocks::none, swap = WhichBlocks::none;
};

constexpr GridConfig two{1, 2, 1, 1}, four{1, 4, 1, 1}, eight{1, 8, 1, 1}, with_data{1, 2, 2, 1},
    four_with_data{1, 4, 2, 1}, with_tensor{1, 2, 1, 2};
constexpr auto gpipe = ScheduleKind::gpipe, alternating = ScheduleKind::one_forward_one_backward,
               halves = ScheduleKind::zero_bubble, elastic = ScheduleKind::elastic;
constexpr auto f32 = Precision::f32, bf16 = Precision::bf16;
constexpr auto adamw = OptimizerKind::adamw, sgd = OptimizerKind::sgd;
constexpr auto none = WhichBlocks::none, block = WhichBlocks::block;

const std::vector<Kind> kinds{
    {Style::llama, two, 1, 1, 0, alternating, f32, adamw},
    {Style::gpt2, two, 1, 2, 0, gpipe, bf16, sgd},
    {Style::transformer, two, 2, 1, 0, elastic, f32, adamw, block},
    {Style::post_norm, two, 1, 1, 0, halves, bf16, adamw},
    {Style::bert, two, 1, 1, 0, alternating, f32, sgd, none, block},
    {Style::vit, two, 2, 1, 0, alternating, bf16, adamw},
    {Style::evolved, two, 1, 1, 0, alternating, f32, adamw},
    {Style::wide_resnet, two, 1, 2, 0, alternating, bf16, sgd},
    {Style::subnet, two, 1, 1, 0, alternating, f32, adamw},
    {Style::llama, four, 1, 1, 0, alternating, bf16, adamw},
    {Style::transformer, four, 1, 2, 0, gpipe, f32, sgd, none, block},
    {Style::evolved, four, 1, 1, 0, elastic, bf16, adamw, none, block},
    {Style::llama, with_data, 1, 2, 0, alternating, f32, sgd},
    {Style::llama, with_data, 1, 4, 1, alternating, bf16, adamw},
    {Style::llama, with_data, 1, 4, 2, alternating, f32, adamw, block},
    {Style::gpt2, with_data, 1, 2, 2, halves, bf16, sgd, none, block},
    {Style::post_norm, with_data, 2, 2, 1, elastic, f32, adamw},
    {Style::wide_resnet, with_data, 1, 2, 2, alternating, f32, sgd},
    {Style::llama, with_tensor, 2, 1, 0, alternating, bf16, adamw},
    {Style::vit, with_tensor, 4, 1, 0, gpipe, f32, adamw},
    {Style::llama, eight, 1, 1, 0, alternating, bf16, adamw, none, block},
    {Style::llama, four_with_data, 1, 2, 2, alternating, f32, adamw},
    {Style::transformer, four_with_data, 1, 4, 1, elastic, bf16, sgd},
};

/// The runs that last a thousand steps.
const std::vector<Kind> long_kinds{
    {Style::llama, four, 1, 1, 0, alternating, f32, adamw},
    {Style::llama, four_with_data, 1, 2, 0, alternating, f32, sgd},
    {Style::llama, four_with_data, 1, 2, 1, alternating, bf16, adamw},
    {Style::llama, four_with_data, 1, 2, 2, alternating, f32, adamw},
};

int all_of(const GridConfig& grid) { return grid.pipeline * grid.data * grid.tensor; }

/// A run of a kind that does not move yet. Under ZeRO units are longer than the chunks that shares are cut
/// at.
Config still(const Kind& kind) {
  Config c = tiny(kind.style, kind.tensor, kind.data, 3, std::max(8, 2 * kind.grid.pipeline));
  if (kind.zero > 0 && kind.style == Style::llama) {
    text_model(c).width = 128;
    text_model(c).mlp_width = 256;
    text_model(c).heads = 4;
    c.model.gpt.key_value_heads = 2;
  }
  c.grid = kind.grid;
  c.schedule.kind = kind.schedule;
  if (row_of(kind.schedule).has_groups) c.schedule.groups = groups_of(c);
  c.train.zero = kind.zero;
  c.train.sequence_parallel = kind.grid.tensor > 1;
  c.train.precision = kind.precision;
  c.train.recompute = kind.recompute;
  c.train.swap = kind.swap;
  c.train.clip = 0.05;  // all gradients are longer
  c.train.noise_every = 1;
  c.optimizer.kind = kind.optimizer;
  return resolve(c);
}

std::vector<Config> runs_here(int steps, const std::vector<Kind>& all = kinds, int apart = every) {
  std::vector<Config> runs;
  unsigned seed = 0;
  for (const Kind& kind : all) {
    ++seed;
    if (all_of(kind.grid) != all_ranks().size) continue;
    runs.push_back(still(kind));
    if (kind.swap.any()) {
      EXPECT_GT(make_run_plan(runs.back()).segments_on_host(0), 0) << "nothing is swapped";
    }
    const std::set<BoundaryWay> ways = draw_moves(runs.back(), seed, apart, steps);
    if (kind.style == Style::llama && steps >= all_steps) {
      EXPECT_EQ(std::ssize(ways), 2 * (kind.grid.pipeline - 1)) << "every boundary goes both ways";
    }
    runs.back() = resolve(runs.back());
  }
  return runs;
}

/// On many ranks to a processor one in three.
std::vector<Config> thinned(const std::vector<Config>& runs) {
  if (all_ranks().size == 2) return runs;
  std::vector<Config> some;
  for (std::size_t i = 1; i < runs.size(); i += 3) some.push_back(runs[i]);
  return some;
}

TEST(BlocksThatMove, LeaveTheBitsOfARunThatNeverMoves) {
  compare(runs_here(all_steps), 0, all_steps, outcome_of_steps, outcome_of_steps);
}

TEST(BlocksThatMove, LeaveTheBitsOfAThousandSteps) {
  if (std::getenv("MINDPIPE_ALL_LAYOUTS") == nullptr) GTEST_SKIP() << "make test-moves runs this";
  const int steps = steps_of_tests(1000);
  compare(runs_here(steps, long_kinds, 50), 0, steps, outcome_of_steps, outcome_of_steps);
}

/// In every fourth step, moving ones among them, a gradient is infinite on one rank, and nothing is updated.
Outcome outcome_with_skips(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  train_some(worker, steps, outcome, [&](int step) {
    const Coord& at = worker.layout().coord;
    if (step % 4 == 3 && at.pipeline + at.data + at.tensor == 0)
      worker.updates().folds().spoil_next(std::numeric_limits<float>::infinity());
  });
  outcome.state = worker.state().digest();
  return outcome;
}

TEST(BlocksThatMove, DoSoInStepsThatChangeNothing) {
  std::vector<Config> runs = runs_here(all_steps);
  std::erase_if(runs, [](const Config& c) { return c.model.kind != ModelKind::gpt; });
  for (Config& c : runs)
    for (CutAt& move : c.repartition.at) move.step = move.step / every * 4;  // all of them are skipped
  compare(thinned(runs), 0, all_steps - 1, outcome_with_skips, outcome_with_skips);
}

std::vector<Config> few_runs(int steps) {
  std::vector<Config> runs = runs_here(steps);
  std::erase_if(runs, [](const Config& c) {
    return c.model.kind != ModelKind::gpt && c.model.kind != ModelKind::transformer;
  });
  return thinned(runs);
}

TEST(BlocksThatMove, OnDevicesThatRunBehindTheHost) {
  compare(few_runs(23), 0, 23, outcome_of_the_late, outcome_of_steps);
}

TEST(BlocksThatMove, OnDevicesThatCarryTheirMessages) {
  compare(few_runs(23), 0, 23, outcome_of_the_queued, outcome_of_steps);
}

/// Behind each step an evaluation, and of each fifth one the state: what reads the model follows its cut.
Outcome outcome_looked_at(const Config& config, const World& world, int steps) {
  Worker worker(config, world);
  share_processors(worker);
  Outcome outcome;
  BatchFeed feed(worker.config(), worker.layout()), other(worker.config(), worker.layout());
  for (int step = 0; step < steps; ++step) {
    const StepScalars scalars = worker.run(feed.at(step)).value();
    outcome.losses.push_back(scalars.loss);
    const Evaluation found = worker.evaluator().evaluate(other.at(1000 + step));
    outcome.norms.push_back(found.losses);
    outcome.noise.insert(outcome.noise.end(), {0, 0});
    if (step % every != every - 1) continue;
    const Sha256::Digest state = worker.state().digest();
    std::memcpy(&outcome.noise.back(), state.data(), sizeof(double));
  }
  outcome.state = worker.state().digest();
  return outcome;
}

TEST(BlocksThatMove, AreEvaluatedWhereTheyAre) {
  compare(few_runs(21), 0, 21, outcome_looked_at, outcome_looked_at);
}

/// Trains up to `saved`, is saved while it trains `meanwhile` steps more, and is gone.
void save_amid_moves(const Config& config, const World& world, const std::string& directory, int saved,
                     int meanwhile) {
  const auto worker = worker_of(config, world);
  Outcome outcome;
  train_steps(*worker, 0, saved, outcome);
  save(*worker, directory, saved, [&] { train_steps(*worker, saved, meanwhile, outcome); });
}

TEST(BlocksThatMove, GoOnFromACheckpointOnAnotherGridAndInTheMiddle) {
  const World world = all_ranks();
  constexpr int steps = 24;
  SharedFolder folder;
  int number = 0;
  for (Config config : few_runs(steps)) {
    if (config.train.precision == Precision::bf16 && world.size == 4) continue;
    config.train.noise_every = 0;
    config.checkpoint.every = 1;
    config = resolve(config);
    const Config one = alone(config);
    Outcome wanted;
    {
      const auto worker = worker_of(one, {});
      train_steps(*worker, 0, steps, wanted);
      wanted.state = worker->state().digest();
    }
    for (const int saved : {9, 10, 11}) {  // before, in and behind a step that moves blocks
      if (world.size > 2 && saved != 2 * every) continue;
      const std::string directory = folder / std::to_string(++number);
      save_amid_moves(config, world, directory, saved, 6);
      const auto goes_on = [&](const Config& other, const World& ranks) {
        const auto worker = worker_of(other, ranks);
        load(*worker, checkpoint_of(directory, saved));
        EXPECT_EQ(worker->plan().outline.first_block[1], ranks.size == 1 ? worker->plan().outline.all_blocks()
                                                         : saved >= 2 * every
                                                             ? other.repartition.at[1].cuts[0]
                                                             : other.repartition.at[0].cuts[0]);
        Outcome got;
        train_steps(*worker, saved, steps - saved, got);
        got.state = worker->state().digest();
        Outcome rest = wanted;
        rest.losses.erase(rest.losses.begin(), rest.losses.begin() + saved);
        rest.norms.erase(rest.norms.begin(), rest.norms.begin() + saved);
        EXPECT_EQ(difference(got, rest), "") << describe(other) << ", from step " << saved;
      };
      goes_on(config, world);
      MPI_Barrier(MPI_COMM_WORLD);
      if (world.rank == 0) goes_on(one, {});
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

/// A rank that may move more blocks over a boundary has room for each of them.
TEST(BlocksThatMove, HaveRoomForAsManyAsMayCome) {
  if (all_ranks().rank > 0) return;
  Config c = still(kinds[0]);
  c.repartition.every = 5;
  const RunPlan plan = make_run_plan(resolve(c));
  const auto room_for = [&](int blocks) {
    c.repartition.room = blocks;
    return total_of(with_room_to_move(c, plan).most_memory(0)) - total_of(plan.most_memory(0));
  };
  EXPECT_GT(room_for(1), 0);
  EXPECT_EQ(room_for(2), 2 * room_for(1));
}

/// Memory of a rank is what was planned, to the byte, whichever cut it has come to.
TEST(BlocksThatMove, TakeTheMemoryThatWasPlanned) {
  for (Config config : runs_here(11)) {
    // The largest rank of all has not a byte more, in moving steps either.
    RunPlan first = make_run_plan(config);
    std::vector<PlannedMove> moves = plan_moves(config, first);
    std::vector<const RunPlan*> plans{&first};
    for (const PlannedMove& move : moves) plans.insert(plans.end(), {&move.during, &move.after});
    for (const RunPlan* plan : plans)
      for (int stage = 0; stage < first.outline.stages; ++stage)
        config.memory.device_limit = std::max(config.memory.device_limit, total_of(plan->most_memory(stage)));
    Worker worker(config, all_ranks());
    share_processors(worker);
    BatchFeed feed(worker.config(), worker.layout());
    for (int step = 0; step < 11; ++step) {
      worker.run(feed.at(step));
      std::int64_t planned = total_of(worker.plan().memory_of(worker.layout().coord));
      EXPECT_LE(static_cast<std::int64_t>(worker.memory().allocated()), planned)
          << describe(config) << ", behind step " << step + 1 << "\n"
          << worker.memory().ledger() << "planned\n"
          << ledger_of(worker.plan().memory_of(worker.layout().coord));
    }
  }
}

}  // namespace
}  // namespace mindpipe
