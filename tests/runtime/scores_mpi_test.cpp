// ranks: 1, thorough ranks: 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "runtime/parity_compare.h"
#include "runtime/ranks.h"
#include "runtime/scores.h"

// Networks of a supernet are scored one behind the other: every grid finds the bits of a plain loop, in
// order, and asks for networks as late as their lag says.
namespace mindpipe {
namespace {

std::vector<GridConfig> grids_of_scores(int ranks) {
  std::vector<GridConfig> grids = grids_of(ranks);
  std::erase_if(grids, [](const GridConfig& grid) {
    return grid.tensor > 2 || grid.data > 2 || grid.pipeline == 6 || grid.pipeline == 7;
  });
  return grids;
}

/// Where scores differ first, in words; empty where every bit is the same.
std::string other_score(const std::vector<Evaluation>& got, const std::vector<Evaluation>& wanted) {
  if (got.size() != wanted.size()) return fmt::format("{} scores and not {}", got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted[i])
      return fmt::format("score {}: losses {} and not {}, {} targets and not {}", i, got[i].losses,
                         wanted[i].losses, got[i].targets, wanted[i].targets);
  return {};
}

/// Where scores on a grid differ from a plain loop's, in words; the first of them, as many as are asked for.
std::string differ(const Config& config, const World& world, std::vector<Evaluation> wanted, int networks) {
  Worker worker(config, world);
  share_processors(worker);
  wanted.resize(static_cast<std::size_t>(networks));
  return other_score(scores_of(worker, {.networks = networks}).scores, wanted);
}

TEST(Scores, AreThoseOfAPlainLoopOnEveryGrid) {
  const World world = all_ranks();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const std::vector<Evaluation> wanted = PlainScores(config_of_scores(precision)).scores();
    std::set<double> different;
    for (const Evaluation& score : wanted) different.insert(score.losses);
    EXPECT_EQ(std::ssize(different), scored_networks) << "one heard of in another's place would be noticed";
    for (const GridConfig& grid : grids_of_scores(world.size)) {
      const Config config = config_of_scores(precision, grid);
      EXPECT_EQ(differ(config, world, wanted, 16), "") << describe(config);
    }
  }
}

/// On devices that carry messages themselves and run behind their hosts.
TEST(Scores, OfDevicesThatAreBehindAreTheSame) {
  const World world = all_ranks();
  std::vector<Evaluation> wanted = PlainScores(config_of_scores(Precision::f32)).scores();
  wanted.resize(12);
  for (const GridConfig& grid : grids_of_scores(world.size)) {
    std::vector<Evaluation> got;
    outcome_of_queued(
        config_of_scores(Precision::f32, grid), world, 0, carried_in_order,
        [&](Worker& worker, int, Outcome&) { got = scores_of(worker, {.networks = 12}).scores; });
    EXPECT_EQ(other_score(got, wanted), "") << describe(config_of_scores(Precision::f32, grid));
  }
}

/// Whether all ranks say the same.
bool same_everywhere(const std::string& mine, const World& world) {
  std::string others = mine;
  int length = static_cast<int>(mine.size()), shortest = 0, longest = 0;
  MPI_Allreduce(&length, &shortest, 1, MPI_INT, MPI_MIN, world.comm);
  MPI_Allreduce(&length, &longest, 1, MPI_INT, MPI_MAX, world.comm);
  if (shortest != longest) return false;
  MPI_Allreduce(mine.data(), others.data(), length, MPI_CHAR, MPI_MAX, world.comm);
  int same = mine == others ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, world.comm);
  return same == 1;
}

/// How many networks were under way each time that one more was asked for.
std::vector<int> in_flight(const std::string& order) {
  std::vector<int> all;
  int open = 0;
  for (const char one : order) {
    if (one == 'n') all.push_back(open++);
    else --open;
  }
  return all;
}

TEST(Scores, AreAskedForAndHeardOfInOneOrderOnAllRanks) {
  const World world = all_ranks();
  for (const GridConfig& grid : grids_of_scores(world.size)) {
    Worker worker(config_of_scores(Precision::f32, grid), world);
    share_processors(worker);
    const std::int64_t least = worker.evaluator().least_lag(scored_batches);
    EXPECT_EQ(least, grid.pipeline == 1 ? 1 : 2) << "two stages, or four, are less than 12 forwards";
    for (const std::int64_t lag : {least, least + 1, std::int64_t{1000}}) {
      const ScoresTold told = scores_of(worker, {.lag = lag, .networks = 12});
      EXPECT_EQ(told.scores.size(), 12u);
      EXPECT_TRUE(same_everywhere(told.order, world)) << told.order;
      const std::vector<int> open = in_flight(told.order);
      EXPECT_LT(*std::max_element(open.begin(), open.end()), lag);
      EXPECT_GE(*std::max_element(open.begin(), open.end()), least - 1);
    }
    if (least > 1) {
      EXPECT_THROW(scores_of(worker, {.lag = least - 1}), Error);
    }
  }
}

TEST(Scores, EndAtOnePlaceWhereARankWishesIt) {
  const World world = all_ranks();
  for (const GridConfig& grid : grids_of_scores(world.size)) {
    Worker worker(config_of_scores(Precision::f32, grid), world);
    share_processors(worker);
    const int asks_first = world.size / 2;
    const ScoresTold told = scores_of(worker, {.wishes_at = world.rank == asks_first ? 9 : -1});
    EXPECT_TRUE(same_everywhere(told.order, world)) << told.order;
    EXPECT_GE(told.scores.size(), 10u);
    EXPECT_LT(told.scores.size(), 32u);
    EXPECT_EQ(std::count(told.order.begin(), told.order.end(), 'n'), std::ssize(told.scores))
        << "those under way go on to their ends";
    EXPECT_EQ(scores_of(worker, {.networks = 3}).scores.size(), 3u) << "another stream runs behind it";
  }
}

/// A worker that only reads has room for its batches, and for nothing of a training.
TEST(Scores, HoldTheirBatchesInTheMemoryOfThePlan) {
  const World world = all_ranks();
  for (const GridConfig& grid : grids_of_scores(world.size)) {
    const Config config = config_of_scores(Precision::f32, grid);
    std::int64_t boundary_of_one = 0;
    for (const int held : {1, scored_batches}) {
      RunPlan plan = make_run_plan(config, Purpose::reading, {}, held);
      EXPECT_EQ(plan.held_batches, held);
      Worker worker(config, world, std::move(plan));
      share_processors(worker);
      const std::int64_t before = worker.inputs().brought();
      scores_of(worker, {.networks = 10});
      const bool reads = !worker.stage().fields().empty() || worker.stage().has_head();
      EXPECT_EQ(worker.inputs().brought() - before,
                reads ? scored_batches * (held == scored_batches ? 1 : 10) : 0);
      const auto used = [&](MemoryClass kind) {
        return static_cast<std::int64_t>(worker.memory().used(kind));
      };
      EXPECT_EQ(used(MemoryClass::boundary),
                worker.plan().memory_of(worker.layout().coord)[static_cast<int>(MemoryClass::boundary)]);
      EXPECT_EQ(used(MemoryClass::gradients) + used(MemoryClass::optimizer), 0);
      if (held == 1) boundary_of_one = used(MemoryClass::boundary);
      else
        EXPECT_EQ(used(MemoryClass::boundary) - boundary_of_one,
                  (held - 1) * input_bytes(worker.stage().fields(), worker.layout()));
    }
  }
}

/// Batches that prepare a network run before those that it is scored on, in a mode of their own.
TEST(Scores, CountNoBatchOfAnotherMode) {
  const World world = all_ranks();
  for (const GridConfig& grid : grids_of_scores(world.size)) {
    const Config config = config_of_scores(Precision::f32, grid);
    Worker worker(config, world);
    share_processors(worker);
    Corpus corpus = corpus_of_scores(config);
    const std::vector<Subnet> all = networks_to_score(config);
    const auto scores_on = [&](const std::vector<std::int64_t>& batches, std::int64_t prepares) {
      std::vector<Evaluation> scores;
      std::string modes;
      std::size_t next = 0;
      worker.forwards().run(
          {.next = [&]() -> std::optional<ForwardTask> {
             if (next == 6) return std::nullopt;
             return ForwardTask{all[next++].choice, batches};
           },
           .batches = std::ssize(batches),
           .calibrations = prepares < 0 ? 0 : 1,
           .load = [&](std::int64_t batch) -> const StepInput& {
             modes += batch == prepares ? 'p' : 's';
             return worker.inputs().hold(corpus, batch);
           },
           .hear = [&](const std::vector<Evaluation>& found) { scores.push_back(sum_of(found)); }});
      EXPECT_EQ(modes, prepares < 0 ? "ssssssssssss" : "pspspspspsps")
          << "each network is prepared, then scored";
      return scores;
    };
    const std::vector<Evaluation> prepared = scores_on({3, 1}, 3), both = scores_on({3, 1}, -1);
    worker.inputs().forget();
    ASSERT_EQ(prepared.size(), 6u);
    for (std::size_t i = 0; i < prepared.size(); ++i) EXPECT_GT(both[i].targets, prepared[i].targets);
    std::vector<Evaluation> alone;
    std::size_t next = 0;
    worker.forwards().run(
        {.next = [&]() -> std::optional<ForwardTask> {
           if (next == 6) return std::nullopt;
           return ForwardTask{all[next++].choice, {1}};
         },
         .load = [&](std::int64_t batch) -> const StepInput& { return worker.inputs().hold(corpus, batch); },
         .hear = [&](const std::vector<Evaluation>& found) { alone.push_back(sum_of(found)); }});
    EXPECT_EQ(prepared, alone);
  }
}

TEST(AllScores, AreThoseOfAPlainLoopOnEveryGrid) {
  if (std::getenv("MINDPIPE_ALL_SUBNETS") == nullptr) GTEST_SKIP() << "make test-supernets runs this";
  const World world = all_ranks();
  if (world.size > 8) GTEST_SKIP() << "up to 8 ranks";
  int passed = 0, failed = 0;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const std::vector<Evaluation> wanted = PlainScores(config_of_scores(precision)).scores();
    for (const GridConfig& grid : grids_of_scores(world.size)) {
      const Config config = config_of_scores(precision, grid);
      const std::string differs = differ(config, world, wanted, scored_networks);
      EXPECT_EQ(differs, "") << describe(config);
      ++(differs.empty() ? passed : failed);
    }
  }
  if (world.rank == 0)
    std::printf("%d ranks: %d runs passed, %d failed, of scores\n", world.size, passed, failed);
}

}  // namespace
}  // namespace mindpipe
