// ranks: 1 2 4 8
#include "runtime/supernet_runs.h"

#include <gmock/gmock.h>

// Supernets of pictures: their bits on every layout, and scores of networks whose batch norms are calibrated.
namespace mindpipe {
namespace {

/// Whether `make test-supernets` asks: 100 subnets with one and four micro-batches; else fewer.
bool asks_all_pictures() { return std::getenv("MINDPIPE_ALL_SUBNETS") != nullptr; }

/// The grids of `ranks` ranks whose stages have blocks.
std::vector<GridConfig> picture_grids_of(int ranks) {
  std::vector<GridConfig> grids;
  for (int data = 1; data <= 2; ++data)
    for (int tensor = 1; tensor <= 2; ++tensor)
      if (ranks % (data * tensor) == 0 && ranks <= 8 * data * tensor)
        grids.push_back({1, ranks / (data * tensor), data, tensor});
  return grids;
}

SupernetCase of_shapes(const GridConfig& grid, int number) {
  return {.pipeline = grid.pipeline,
          .data = grid.data,
          .tensor = grid.tensor,
          .precision = number % 3 == 0 ? Precision::bf16 : Precision::f32,
          .sequence_parallel = grid.tensor > 1 && number % 2 == 0,
          .recompute = number % 3 == 1,
          .pictures = true};
}

TEST(AllSubnets, OfPicturesHaveTheBitsOfOneAfterTheOther) {
  const World world = all_ranks();
  int number = world.size, passed = 0, failed = 0;
  for (const GridConfig& grid : picture_grids_of(world.size))
    for (const int micro_batches : {1, 4}) {
      SupernetCase c = of_shapes(grid, ++number);
      c.micro_batches = micro_batches;
      c.subnets = asks_all_pictures() ? 100 : 24;
      if (micro_batches == 4 && !asks_all_pictures()) continue;
      const Config config = config_of(c);
      const SubnetsOutcome got = trained(config, world, 1000 * world.size + number);
      if (world.rank != 0) continue;
      const std::string differs = difference(got, one_after_the_other(config));
      EXPECT_EQ(differs, "") << fmt::format("pipeline {}, data {}, tensor {}, {} micro-batches, {}",
                                            grid.pipeline, grid.data, grid.tensor, 2 * micro_batches,
                                            name_of(c.precision));
      ++(differs.empty() ? passed : failed);
    }
  if (world.rank == 0 && asks_all_pictures())
    std::printf("%d ranks: %d runs passed, %d failed\n", world.size, passed, failed);
}

/// One network of that space, of each word where the picture is kept and of some where it is halved.
Config of_a_network(const GridConfig& grid, int number) {
  const SupernetCase c = of_shapes(grid, number);
  Config config = config_of(c);
  config.model.kind = ModelKind::subnet;
  config.schedule.kind = number % 2 == 0 ? ScheduleKind::one_forward_one_backward : ScheduleKind::gpipe;
  SpaceSettings& m = config.model.subnet;
  m = config.model.supernet;
  config.model.subnet.choice = {number % 6, 1, 2, 3, (number + 3) % 6, 5, 4, 0};
  return resolve(config);
}

TEST(PictureNetworks, ByThemselvesHaveTheBitsOfAPlainLoopOnEveryLayout) {
  const World world = all_ranks();
  int number = world.size;
  for (const GridConfig& grid : picture_grids_of(world.size)) {
    const Config config = of_a_network(grid, ++number);
    const Outcome got = outcome_of(config, world, 4);
    if (world.rank != 0) continue;
    Config alone = config;
    alone.grid = {1, 1, 1, 1};
    alone.train.sequence_parallel = false;
    EXPECT_EQ(difference(got, PlainLoop(alone).run(4)), "")
        << fmt::format("pipeline {}, data {}, tensor {}", grid.pipeline, grid.data, grid.tensor);
  }
}

/// A supernet whose evaluations calibrate three networks on drawn shapes.
Config on_drawn_shapes(const GridConfig& grid, Precision precision, bool sequence_parallel) {
  SupernetCase c = of_shapes(grid, 1);
  c.precision = precision;
  c.sequence_parallel = sequence_parallel;
  Config config = config_of(c);
  config.model.supernet.channels = 1;
  config.model.supernet.picture_height = config.model.supernet.picture_width = 32;
  config.data.train = config.data.validation = {{"synthetic:shapes", 1}};
  config.train.batch = 16;
  config.train.micro_batch = 4;
  config.supernet.evaluate_subnets = 3;
  return config;
}

Corpus validation_of(const Config& config) {
  return Corpus(config.data, Subset::validation, fields_of(config), config.seed);
}

Evaluation score_of(const Config& config, const World& world) {
  Worker worker(config, world);
  share_processors(worker);
  Corpus corpus = validation_of(config);
  const Evaluation found = worker.evaluator().evaluate(corpus, 2);
  EXPECT_EQ(worker.evaluator().evaluate(corpus, 2), found) << "calibrating again gives the same score";
  return found;
}

/// A score as one would find it without an executor: whole batches, one micro-batch after the other.
class PlainScore : PlainLoop {
 public:
  explicit PlainScore(const Config& config) : PlainLoop(config) {
    std::map<int, std::size_t> bytes;
    for (int block = 0; block < static_cast<int>(model_->blocks().size()); ++block)
      bytes[block] = aligned(model_->blocks()[block].layer->statistics_bytes());
    statistics_.emplace(memory_, bytes);
  }

  /// The sum of losses of a network on two batches.
  double score(const Subnet& subnet) {
    Corpus train(config_.data, Subset::train, model_->fields(), config_.seed);
    Corpus held_out = validation_of(config_);
    std::int64_t calibrated = 0;
    for (int batch = 0; batch < config_.supernet.calibrate_batches; ++batch)
      for (int m = 0; m < layout_.micro_batches(); ++m)
        pass(train, batch, m, subnet, Tape::Mode::calibrate, calibrated++);
    double sum = 0;
    for (int batch = 0; batch < 2; ++batch) {
      std::vector<Floats64> shards;
      const int of_shard = layout_.micro_batches() / layout_.data_shards;
      for (int m = 0; m < layout_.micro_batches(); ++m) {
        if (m % of_shard == 0) shards.push_back({0.0});
        shards.back()[0] += pass(held_out, batch, m, subnet, Tape::Mode::evaluate, calibrated);
      }
      sum += tree(shards)[0];
    }
    return sum;
  }

 private:
  double pass(Corpus& corpus, int batch, int micro_batch, const Subnet& subnet, Tape::Mode mode,
              std::int64_t calibrated) {
    Tape tape(*backend_, kept_, scratch_);
    tape.mode = mode;
    tape.batch.samples = layout_.samples;
    tape.batch.choice = subnet.choice.data();
    tape.batch.calibrated = calibrated;
    tape.statistics = &*statistics_;
    for (const Field& field : model_->fields())
      tape.batch.fields.set(field.name, scratch_.take(field.of(layout_.samples), field.type));
    corpus.batch(std::int64_t{batch} * layout_.batch + std::int64_t{micro_batch} * layout_.samples,
                 tape.batch.fields);
    tape.losses = scratch_.take({layout_.samples, 1}, DType::f32);
    Boundary b;
    for (int block = 0; block < static_cast<int>(model_->blocks().size()); ++block) {
      statistics_->enter(block);
      b = model_->blocks()[block].layer->forward(b, tape);
    }
    double sum = 0;
    for (std::int64_t i = 0; mode == Tape::Mode::evaluate && i < tape.losses.count(); ++i)
      sum += tape.losses.as<float>()[i];
    tape.clear();
    scratch_.release(0);
    return sum;
  }

  std::optional<NetworkStatistics> statistics_;
};

TEST(PictureScores, AreTheSameOnEveryLayout) {
  const World world = all_ranks();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Evaluation alone = score_of(on_drawn_shapes({1, 1, 1, 1}, precision, false), {});
    ASSERT_EQ(alone.targets, 3 * 2 * 16);
    for (const GridConfig& grid : picture_grids_of(world.size)) {
      if (world.size == 1) continue;
      EXPECT_EQ(score_of(on_drawn_shapes(grid, precision, grid.tensor > 1 && grid.data == 1), world), alone)
          << fmt::format("pipeline {}, data {}, tensor {}", grid.pipeline, grid.data, grid.tensor);
    }
  }
}

TEST(PictureScores, AreThoseOfAPlainLoop) {
  if (all_ranks().size > 1) GTEST_SKIP() << "one rank is enough";
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Config config = on_drawn_shapes({1, 1, 1, 1}, precision, false);
    double sum = 0;
    for (const Subnet& subnet : subnets_to_evaluate(config)) sum += PlainScore(config).score(subnet);
    EXPECT_DOUBLE_EQ(score_of(config, {}).losses, sum);
  }
}

TEST(PictureScores, DependOnWhatANetworkWasCalibratedOn) {
  if (all_ranks().size > 1) GTEST_SKIP() << "one rank is enough";
  Config config = on_drawn_shapes({1, 1, 1, 1}, Precision::f32, false);
  const std::vector<Subnet> subnets = subnets_to_evaluate(config);
  config.supernet.evaluate_subnets = 1;
  Corpus corpus = validation_of(config);
  const auto score_of_first = [&](Worker& worker, std::int64_t calibrated) {
    StepInput& input = worker.inputs().load(corpus, 0);
    input.choice = subnets[0].choice.data();
    input.calibrated = calibrated;
    return worker.evaluator().evaluate(input).losses;
  };
  try {
    Worker never(config, {});
    score_of_first(never, 0);
    ADD_FAILURE() << "a network that was never calibrated";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("a network of a supernet is evaluated before it is calibrated"));
  }
  Worker worker(config, {});
  const double own = worker.evaluator().evaluate(corpus, 1).losses;
  const int micro_batches = config.supernet.calibrate_batches * config.train.batch / config.train.micro_batch;
  EXPECT_EQ(score_of_first(worker, micro_batches), own)
      << "what was collected stays until the next network's";
  Config other = config;
  other.supernet.calibrate_batches = 1;
  Worker fewer(other, {});
  EXPECT_NE(fewer.evaluator().evaluate(corpus, 1).losses, own) << "on other pictures";
}

}  // namespace
}  // namespace mindpipe
