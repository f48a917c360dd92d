// ranks: 1 2 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/plain_supernet.h"
#include "runtime/ranks.h"
#include "runtime/subnet_batches.h"
#include "spaces.h"
#include "supernet/sampler.h"

// A run of subnets up to drains: planned on a thread of its own, drained where a rank wishes it, told on rank
// 0.
namespace mindpipe {
namespace {

constexpr int window = 8, subnets_of_the_run = 150;  // the last window is a shorter one

/// What the ranks of a run are: stages; stages of every second data and tensor rank; lanes of one stage;
/// lanes of two stages, whose subnets have one cut or cuts of their own.
enum class Ranks { stages, all_axes, lanes, lanes_of_two, own_cuts };

GridConfig grid_of_run(int ranks, Ranks are) {
  switch (are) {
    case Ranks::stages:
      break;
    case Ranks::all_axes: {
      const int data = ranks > 1 ? 2 : 1, tensor = ranks > 2 ? 2 : 1;
      return {1, ranks / data / tensor, data, tensor};
    }
    case Ranks::lanes:
      return {ranks, 1, 1, 1};
    case Ranks::lanes_of_two:
    case Ranks::own_cuts:
      return {std::max(1, ranks / 2), std::min(2, ranks), 1, 1};
  }
  return {1, ranks, 1, 1};
}

Config config_of_run(int ranks, Ranks are = Ranks::stages) {
  Config config;
  config.model.kind = ModelKind::supernet;
  config.schedule.kind = ScheduleKind::causal;
  supernet::Settings& m = config.model.supernet;
  m.space = space_from(
      "{name: texts, decoder: {blocks: 6, candidates: [attention-4, mlp-2, separable-3, glu, identity]}}");
  m.width = 16;
  m.vocabulary = 67;
  m.dropout = 0.1;
  m.context = 8;
  config.data.sequence = 8;
  config.data.special = {60, 61, 3, 66};
  config.grid = grid_of_run(ranks, are);
  if (are == Ranks::own_cuts && ranks > 1) config.supernet.cuts = SubnetCuts::own;
  config.reproducible.tensor = config.reproducible.data = 2;
  config.train.batch = 4;
  config.train.micro_batch = 2;
  config.train.steps = subnets_of_the_run;
  config.train.clip = 0.05;
  config.optimizer.rate.kind = RateKind::linear;
  config.optimizer.rate.peak = 0.01;
  config.supernet.window = window;
  config.device.threads = 1;
  return config;
}

std::unique_ptr<Sampler> stream_from(const Config& config, std::int64_t first) {
  return draw_subnets(config.model.supernet.space, {.seed = 11}, first);
}

std::vector<Subnet> whole_stream(const Config& config) {
  std::vector<Subnet> subnets;
  const auto stream = stream_from(config, 0);
  for (int id = 0; id < subnets_of_the_run; ++id) subnets.push_back(stream->next());
  return subnets;
}

/// A worker that trains subnets of the test's batches, and what it tells.
class SubnetRun {
 public:
  SubnetRun(const Config& config, const World& world) : worker_(config, world), config_(config) {
    share_processors(worker_);
  }
  SubnetFeed& feed() { return *worker_.subnets(); }
  void begin(std::int64_t first) {
    calls_.admitted = first;
    feed().begin(stream_from(config_, first), first);
  }
  /// Passes a batch through another network, as an evaluation does.
  void evaluate() {
    const std::vector<std::uint8_t> choice(config_.model.supernet.space.decoder.size(), 1);
    StepInput input = calls_.feed().at(1000);
    input.choice = choice.data();
    worker_.evaluator().evaluate(input);
  }
  SubnetsOutcome outcome() {
    SubnetsOutcome outcome;
    for (const SubnetScalars& scalars : told()) outcome.losses.push_back(scalars.loss());
    for (const CheckpointUnit& unit : worker_.state().unit_counters())
      outcome.counters.push_back(unit.version);
    outcome.newest = worker_.state().digest();
    outcome.before_newest = worker_.state().digest(older_state);
    return outcome;
  }
  Worker& worker() { return worker_; }
  const std::vector<SubnetScalars>& told() const { return calls_.told; }
  void wish(std::function<bool()> wish) { calls_.wish = std::move(wish); }

 private:
  /// Checks which subnets are admitted, and keeps what is told.
  struct Calls : SubnetBatches {
    using SubnetBatches::SubnetBatches;
    void load(const Subnet& subnet, StepInput& input) override {
      EXPECT_LT(subnet.id, admitted);
      SubnetBatches::load(subnet, input);
    }
    void admits(std::int64_t first, std::int64_t end) override {
      EXPECT_EQ(first, admitted);
      EXPECT_LE(end, first + 64);
      admitted = end;
    }
    bool wishes_to_drain() override { return wish(); }
    void hear(const SubnetScalars& scalars) override { told.push_back(scalars); }
    BatchFeed& feed() { return feed_; }

    std::int64_t admitted = 0;
    std::function<bool()> wish = [] { return false; };
    std::vector<SubnetScalars> told;
  };

  Worker worker_;
  Calls calls_{worker_};
  Config config_;
};

/// Checks that each subnet was told once and in order, with all but the time as a run on one rank tells it.
void expect_told_alike(const std::vector<SubnetScalars>& told, const std::vector<SubnetScalars>& wanted) {
  ASSERT_EQ(told.size(), wanted.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    const SubnetScalars &got = told[i], &want = wanted[i];
    EXPECT_EQ(got.subnet, static_cast<std::int64_t>(i));
    EXPECT_TRUE(got.loss() == want.loss() || (std::isnan(got.loss()) && std::isnan(want.loss()))) << i;
    EXPECT_EQ(std::vector({got.valid, got.units, got.clipped, got.skipped}),
              std::vector({want.valid, want.units, want.clipped, want.skipped}))
        << i;
    EXPECT_GT(got.seconds, 0) << i;
  }
}

class SubnetTraining : public testing::TestWithParam<Ranks> {
 protected:
  bool all_say(bool mine) const {
    int all = mine ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, world.comm);
    return all == 1;
  }
  void SetUp() override {
    if (world.size == 1 && GetParam() != Ranks::stages) GTEST_SKIP() << "one rank is a stage";
    if (world.size == 2 && GetParam() == Ranks::lanes_of_two) GTEST_SKIP() << "two ranks are one lane of two";
  }
  const World world = all_ranks();
  const Config config = config_of_run(world.size, GetParam());
  Config on_one_rank() const { return config_of_run(1); }
  /// What a plain loop finds of the whole run, whatever its ranks are.
  const SubnetsOutcome& wanted() const {
    static const SubnetsOutcome found = PlainSupernet(on_one_rank()).run(whole_stream(config));
    return found;
  }
};

TEST_P(SubnetTraining, TellsRank0OfEachSubnetWithThePlainLoopsLoss) {
  SubnetRun run(config, world);
  run.begin(0);
  EXPECT_EQ(run.feed().train_to(subnets_of_the_run), subnets_of_the_run);
  EXPECT_EQ(run.feed().train_to(subnets_of_the_run), subnets_of_the_run);
  const SubnetsOutcome got = run.outcome();
  if (world.rank != 0) {
    EXPECT_TRUE(run.told().empty());
    return;
  }
  EXPECT_EQ(difference(got, wanted()), "");
  SubnetRun alone(on_one_rank(), World{});
  alone.begin(0);
  alone.feed().train_to(subnets_of_the_run);
  expect_told_alike(run.told(), alone.told());
  const auto& blocks = config.model.supernet.space.decoder;
  std::int64_t clipped = 0;
  for (const Subnet& subnet : whole_stream(config)) {
    std::int64_t units = 0;
    for (std::size_t block = 0; block < blocks.size(); ++block)
      units += has_parameters(blocks[block][subnet.choice[block]]) ? 1 : 0;
    const SubnetScalars& scalars = run.told()[subnet.id];
    const bool closes = (subnet.id + 1) % window == 0 || subnet.id + 1 == subnets_of_the_run;
    if (closes) {
      EXPECT_GT(scalars.units, units) << subnet.id;
    } else {
      EXPECT_EQ(scalars.units, units) << subnet.id;
    }
    clipped += scalars.clipped;
  }
  EXPECT_GT(clipped, 0);
}

TEST_P(SubnetTraining, HasTheSameBitsHoweverItIsCutAndBegunAgain) {
  SubnetRun run(config, world);
  run.begin(0);
  for (const std::int64_t drain : {window, 3 * window, 13 * window}) {
    EXPECT_EQ(run.feed().train_to(drain), drain);
    run.evaluate();
    if (drain == 3 * window) run.begin(drain);
  }
  EXPECT_EQ(run.feed().train_to(subnets_of_the_run), subnets_of_the_run);
  const SubnetsOutcome got = run.outcome();
  if (world.rank == 0) {
    EXPECT_EQ(difference(got, wanted()), "");
  }
}

TEST_P(SubnetTraining, OneRanksWishDrainsAllOfThemAtOneWindowsEnd) {
  SubnetRun run(config, world);
  run.begin(0);
  int asked = 0;
  run.wish([&] { return world.rank + 1 == world.size && ++asked == 1; });
  const std::int64_t done = run.feed().train_to(subnets_of_the_run);
  EXPECT_EQ(done % window, 0);
  EXPECT_EQ(done, 9 * window);  // a window and 64 subnets were planned when it was heard
  EXPECT_EQ(world.rank == 0 ? static_cast<std::int64_t>(run.told().size()) : done, done);
  EXPECT_EQ(run.feed().train_to(subnets_of_the_run), subnets_of_the_run);
  const SubnetsOutcome got = run.outcome();
  if (world.rank == 0) {
    EXPECT_EQ(difference(got, wanted()), "");
  }
}

TEST_P(SubnetTraining, CountsSkippedUnitsAndWhatAllShareWithTheWindowsLast) {
  const auto spoilt = [](const Config& on, const World& among) {
    auto run = std::make_unique<SubnetRun>(on, among);
    Stage& stage = run->worker().stage();
    for (const int unit : stage.local_units())
      if (stage.unit(unit).name() == "blocks.2.1")
        run->worker().backend().fill(
            {stage.unit(unit).flat_values(), std::numeric_limits<double>::quiet_NaN()});
    run->begin(0);
    run->feed().train_to(2 * window);
    return run;
  };
  const auto run = spoilt(config, world);
  if (world.rank != 0) return;
  const auto alone = spoilt(on_one_rank(), World{});
  expect_told_alike(run->told(), alone->told());
  bool is_spoilt = false;
  for (const Subnet& subnet : whole_stream(config)) {
    if (subnet.id == window) break;
    const bool is_hit = subnet.choice[2] == 1;
    is_spoilt |= is_hit;
    const SubnetScalars& scalars = run->told()[subnet.id];
    if (is_hit || (subnet.id + 1 == window && is_spoilt)) {
      EXPECT_GT(scalars.skipped, 0) << subnet.id;
    } else {
      EXPECT_EQ(scalars.skipped, 0) << subnet.id;
    }
  }
  EXPECT_TRUE(is_spoilt);
}

/// Gives one subnet the id of another.
class WrongStream : public Sampler {
 public:
  WrongStream(std::unique_ptr<Sampler> stream, std::int64_t wrong)
      : stream_(std::move(stream)), wrong_(wrong) {}
  Subnet next() override {
    Subnet subnet = stream_->next();
    if (subnet.id == wrong_) ++subnet.id;
    return subnet;
  }

 private:
  std::unique_ptr<Sampler> stream_;
  std::int64_t wrong_;
};

TEST_P(SubnetTraining, WhatThePlannerThrowsComesUpWhereItsPlanIsTaken) {
  SubnetRun run(config, world);
  // The planner of several stages throws at a drain, so that no message is left halfway.
  const std::int64_t wrong = world.size == 1 ? 5 * window : 2 * window;
  run.feed().begin(std::make_unique<WrongStream>(stream_from(config, 0), wrong), 0);
  EXPECT_EQ(run.feed().train_to(window), window);
  EXPECT_EQ(run.feed().train_to(2 * window), 2 * window);
  std::string said;
  try {
    run.feed().train_to(subnets_of_the_run);
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_THAT(said, testing::HasSubstr(fmt::format("subnet {} comes where {} is next", wrong + 1, wrong)));
}

TEST_P(SubnetTraining, RanksWithDifferentPlansFindItOutAtTheDrain) {
  if (world.size == 1) GTEST_SKIP() << "one rank has one plan";
  if (GetParam() == Ranks::own_cuts)
    GTEST_SKIP() << "of other prices are other cuts, and messages that nobody awaits";
  // Prices of one rank alone; one subnet after the other has one order, so that all ends.
  Config own = config;
  RunPlan plan = make_run_plan(own);
  plan.subnets->paper.rules.admission = 1;
  if (world.rank == 0)
    for (auto& candidates : plan.outline.blocks)
      for (BlockCost& cost : candidates) cost.forward += 1000;
  Worker worker(own, world, std::move(plan));
  share_processors(worker);
  SubnetBatches calls(worker);
  worker.subnets()->begin(stream_from(own, 0), 0);
  std::string said;
  try {
    worker.subnets()->train_to(window);
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_THAT(said, testing::HasSubstr("different plans of the subnets before the drain at 8"));
}

std::string name_of_axes(const testing::TestParamInfo<Ranks>& info) {
  constexpr std::array names{"Stages", "AllAxes", "Lanes", "LanesOfTwo", "OwnCuts"};
  return names[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Axes, SubnetTraining,
                         testing::Values(Ranks::stages, Ranks::all_axes, Ranks::lanes, Ranks::lanes_of_two,
                                         Ranks::own_cuts),
                         name_of_axes);

}  // namespace
}  // namespace mindpipe
