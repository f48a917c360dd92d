// ranks: 1 3, thorough ranks: 2 4
#include "runtime/held_out.h"
#include "runtime/parity_compare.h"

namespace mindpipe {
namespace {

/// Held-out samples of which the last batch has one, and of which it has all but one.
constexpr std::array numbers_of_samples{13, 17};

/// What a run that has learned a little finds once over each number of held-out samples, each twice, and with
/// a batch of nothing behind them.
std::vector<Evaluation> found_by(const Config& config, const World& world,
                                 const std::vector<DataSource>& sources) {
  Worker worker(config, world);
  share_processors(worker);
  learn_in_part(worker);
  std::vector<Evaluation> all;
  for (const DataSource& source : sources) {
    Config held_out = config;
    held_out.data.validation = {source};
    Corpus corpus = held_out_once(held_out);
    const std::int64_t batches = batches_of(corpus, held_out);
    all.push_back(worker.evaluator().evaluate(corpus, batches));
    EXPECT_EQ(worker.evaluator().evaluate(corpus, batches), all.back())
        << "an evaluation begins with nothing counted";
    EXPECT_EQ(worker.evaluator().evaluate(corpus, batches + 1), all.back())
        << "a batch without targets counts for nothing";
  }
  return all;
}

std::string told(const Evaluation& e) {
  return fmt::format("losses {}, {} targets, hits {}", e.losses, e.targets, fmt::join(e.hits, ", "));
}

class EvaluationRanks : public ::testing::TestWithParam<ModelKind> {};

/// Rank 0 finds alone what every layout has to find, and tells the others.
std::vector<Evaluation> found_alone(const Config& config, const World& world,
                                    const std::vector<DataSource>& sources) {
  std::vector<Evaluation> alone(numbers_of_samples.size());
  if (world.rank == 0) alone = found_by(config, {}, sources);
  for (Evaluation& one : alone) {
    MPI_Bcast(&one.losses, 1, MPI_DOUBLE, 0, world.comm);
    MPI_Bcast(&one.targets, 1, MPI_INT64_T, 0, world.comm);
    MPI_Bcast(one.hits.data(), static_cast<int>(one.hits.size()), MPI_INT64_T, 0, world.comm);
  }
  return alone;
}

TEST_P(EvaluationRanks, FindTheSameOnceOverAllHeldOutSamplesOnEveryLayout) {
  const World world = all_ranks();
  const HeldOut files;
  std::vector<DataSource> sources;
  for (const int samples : numbers_of_samples) sources.push_back(files.source(GetParam(), samples));
  Config config = model_for(GetParam(), sources.back());
  const std::vector<Evaluation> alone = found_alone(config, world, sources);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    SCOPED_TRACE(told(alone[i]));
    EXPECT_GT(alone[i].hits[Hits::right], 0);
    EXPECT_LT(alone[i].hits[Hits::right], alone[i].targets);
    EXPECT_GE(alone[i].hits[Hits::within_five], alone[i].hits[Hits::right]);
    EXPECT_GT(alone[i].hits[Hits::exact], 0);
    EXPECT_LT(alone[i].hits[Hits::exact], alone[i].samples());
    EXPECT_LE(alone[i].samples(), numbers_of_samples[i]) << "masked texts may have nothing to be found";
    EXPECT_TRUE(GetParam() == ModelKind::bert || alone[i].samples() == numbers_of_samples[i]);
  }
  for (const GridConfig& grid : grids_of(world.size)) {
    config.grid = grid;
    if (world.size == 1 || grid.tensor > 2 || grid.data == 4) continue;
    for (bool sequence_parallel : {false, true}) {
      if (sequence_parallel && grid.tensor == 1) continue;
      config.train.sequence_parallel = sequence_parallel;
      const std::vector<Evaluation> found = found_by(resolve(config), world, sources);
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(told(found[i]), told(alone[i])) << describe(config);
        EXPECT_EQ(found[i], alone[i]) << describe(config);
      }
    }
  }
}

TEST_P(EvaluationRanks, AddUpWhatIsFoundOfEachSampleAlone) {
  if (all_ranks().size > 1) GTEST_SKIP() << "one rank shows it";
  const HeldOut files;
  const Config config = model_for(GetParam(), files.source(GetParam(), 10));
  Worker worker(config, {});
  learn_in_part(worker);
  Corpus corpus = held_out_once(config);
  const Evaluation all = worker.evaluator().evaluate(corpus, batches_of(corpus, config));
  Evaluation sum;
  for (std::int64_t sample = 0; sample < 10; ++sample) {
    StepInput& input = worker.inputs().load(corpus, sample);
    const Tensor targets = input.fields.at(field::targets);
    const std::int64_t each = worker.stage().model().targets_per_sample();
    std::fill(targets.as<std::int32_t>() + each, targets.as<std::int32_t>() + targets.count(), -1);
    input.valid = std::count_if(targets.as<std::int32_t>(), targets.as<std::int32_t>() + each,
                                [](std::int32_t target) { return target >= 0; });
    const Evaluation before = sum;
    sum.add(worker.evaluator().evaluate(input));
    EXPECT_LE(sum.samples(), before.samples() + 1);
    EXPECT_EQ(sum.hits[Hits::exact] > before.hits[Hits::exact],
              input.valid > 0 && sum.hits[Hits::right] - before.hits[Hits::right] == input.valid);
  }
  EXPECT_EQ(sum.hits, all.hits) << told(sum);
  EXPECT_EQ(sum.targets, all.targets);
  EXPECT_NEAR(sum.losses, all.losses, 1e-9 * all.losses);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EvaluationRanks,
                         ::testing::Values(ModelKind::gpt, ModelKind::bert, ModelKind::transformer,
                                           ModelKind::vit, ModelKind::evolved_transformer,
                                           ModelKind::wide_resnet, ModelKind::subnet),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

}  // namespace
}  // namespace mindpipe
