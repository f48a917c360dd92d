// ranks: 1 3, thorough ranks: 2 4
#include "runtime/held_out.h"
#include "runtime/parity_compare.h"

namespace mindpipe {
namespace {

/// What a run finds once over its held-out samples after some steps, twice, and with a batch of nothing
/// behind them.
Evaluation found_by(const Config& config, const World& world) {
  Worker worker(config, world);
  share_processors(worker);
  learn_in_part(worker);
  Corpus corpus = held_out_once(config);
  const std::int64_t batches = batches_of(corpus, config);
  const Evaluation found = worker.evaluator().evaluate(corpus, batches);
  EXPECT_EQ(worker.evaluator().evaluate(corpus, batches), found)
      << "an evaluation begins with nothing counted";
  EXPECT_EQ(worker.evaluator().evaluate(corpus, batches + 1), found)
      << "a batch without targets counts for nothing";
  return found;
}

std::string told(const Evaluation& e) {
  return fmt::format("losses {}, {} targets, hits {}", e.losses, e.targets, fmt::join(e.hits, ", "));
}

class EvaluationRanks : public ::testing::TestWithParam<ModelKind> {};

TEST_P(EvaluationRanks, FindTheSameOnceOverAllHeldOutSamplesOnEveryLayout) {
  const World world = all_ranks();
  const HeldOut files;
  for (std::int64_t samples : {13, 17}) {  // the last batch has one sample, or all but one
    Config config = model_for(GetParam(), files.source(GetParam(), samples));
    const Evaluation alone = found_by(config, {});
    SCOPED_TRACE(told(alone));
    EXPECT_GT(alone.hits[Hits::right], 0);
    EXPECT_LT(alone.hits[Hits::right], alone.targets);
    EXPECT_GE(alone.hits[Hits::within_five], alone.hits[Hits::right]);
    EXPECT_GT(alone.hits[Hits::exact], 0);
    EXPECT_LT(alone.hits[Hits::exact], alone.samples());
    EXPECT_LE(alone.samples(), samples) << "masked texts may have nothing to be found";
    EXPECT_TRUE(GetParam() == ModelKind::bert || alone.samples() == samples);
    for (const GridConfig& grid : grids_of(world.size)) {
      config.grid = grid;
      if (world.size == 1 || grid.tensor > 2 || grid.data == 4) continue;
      for (bool sequence_parallel : {false, true}) {
        if (sequence_parallel && grid.tensor == 1) continue;
        config.train.sequence_parallel = sequence_parallel;
        const Evaluation found = found_by(resolve(config), world);
        EXPECT_EQ(told(found), told(alone)) << describe(config);
        EXPECT_EQ(found, alone) << describe(config);
      }
    }
  }
}

TEST_P(EvaluationRanks, AddUpWhatIsFoundOfEachSampleAlone) {
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
