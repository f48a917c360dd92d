#include "runtime/worker.h"

#include <gtest/gtest.h>

#include "layers/classifier.h"
#include "runtime/small_models.h"

namespace mindpipe {
namespace {

Config trained_on_sums(Config config) {
  config.model.gpt.vocabulary = 128;
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.model.gpt.dropout = 0.1;
  config.model.gpt.attention_dropout = 0.1;
  return resolve(config);
}

struct History {
  std::vector<double> losses, norms;
  Sha256::Digest state{};
  bool operator==(const History&) const = default;
};

/// Some steps of a worker of its own.
History history_of(const Config& config, int steps = 4) {
  Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
  Worker worker(config, {});
  History history;
  for (int step = 0; step < steps; ++step) {
    const StepScalars scalars =
        worker.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-2).value();
    history.losses.push_back(scalars.loss);
    history.norms.push_back(scalars.gradient_norm);
  }
  history.state = worker.state().digest();
  return history;
}

TEST(TokenChunk, IsThatOfTheDeviceAndItsLogitsStayBelowHalfAGibibyte) {
  EXPECT_EQ(token_chunk(row_of(DeviceKind::cpu).wants_many_rows, 256), usual_token_chunk);
  for (const auto& [vocabulary, tokens] :
       std::vector<std::pair<int, int>>{{256, 8192}, {50257, 2048}, {128'256, 1024}, {3'000'000, 256}}) {
    EXPECT_EQ(token_chunk(row_of(DeviceKind::cuda).wants_many_rows, vocabulary), tokens) << vocabulary;
  }
  EXPECT_EQ(gradient_chunk(false, 50257, DType::bf16), usual_token_chunk);
  for (const auto& [vocabulary, dtype, tokens] :
       std::vector<std::tuple<int, DType, int>>{{50257, DType::bf16, 8192},
                                                {128'256, DType::bf16, 8192},
                                                {128'256, DType::f32, 4096},
                                                {3'000'000, DType::bf16, 256}})
    EXPECT_EQ(gradient_chunk(true, vocabulary, dtype), tokens) << vocabulary;
}

TEST(Worker, TwoOfThemInOneProcessTrainAlikeBitForBit) {
  for (const Config& style : {gpt2_style(), llama_style()}) {
    const Config config = trained_on_sums(style);
    Corpus corpus(config.data, Subset::train, fields_of(config), config.seed);
    Worker a(config, {}), b(config, {});
    for (int step = 0; step < 4; ++step) {  // step by step in turn, so that shared state would show
      const StepScalars of_a =
          a.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-2).value();
      const StepScalars of_b =
          b.step(corpus, step, static_cast<std::int64_t>(step) * config.train.batch, 1e-2).value();
      EXPECT_EQ(of_a.loss, of_b.loss) << step;
      EXPECT_EQ(of_a.gradient_norm, of_b.gradient_norm) << step;
    }
    EXPECT_EQ(a.state().digest(), b.state().digest());
    EXPECT_EQ(a.evaluator().evaluate(corpus, 2), b.evaluator().evaluate(corpus, 2));
  }
}

TEST(Worker, OneTwoAndThreeThreadsTrainAlikeBitForBit) {
  for (Precision precision : {Precision::f32, Precision::bf16})
    for (Config style : {gpt2_style(), llama_style()}) {
      style.train.precision = precision;
      const History one = history_of(trained_on_sums(style));
      for (int threads : {2, 3}) {
        style.device.threads = threads;
        EXPECT_EQ(history_of(trained_on_sums(style)), one)
            << name_of(precision) << ", " << threads << " threads";
      }
    }
}

TEST(Worker, TheSeedDecidesTheRun) {
  Config other = gpt2_style();
  other.seed = 6;
  const History a = history_of(trained_on_sums(gpt2_style()), 1), b = history_of(trained_on_sums(other), 1);
  EXPECT_NE(a.losses, b.losses);
  EXPECT_NE(a.state, b.state);
}

TEST(Worker, ABlockThatIsRecomputedTrainsAlikeBitForBit) {
  for (const Config& style : {gpt2_style(), llama_style()}) {
    Config recomputed = style;
    recomputed.train.recompute = WhichBlocks::block;
    EXPECT_EQ(history_of(trained_on_sums(recomputed)), history_of(trained_on_sums(style)));
  }
}

TEST(Worker, ABatchWithoutAValidTokenChangesNothing) {
  const Config config = resolve(gpt2_style());
  Worker worker(config, {});
  const Sha256::Digest before = worker.state().digest();
  const Batches batches = random_batches(config, 2, 1);
  Feeder feeder(worker, batches);
  const StepScalars scalars = feeder.step(0, 1e-2);
  EXPECT_FALSE(scalars.applied);
  EXPECT_EQ(scalars.valid, 0);
  EXPECT_EQ(scalars.loss, 0);
  EXPECT_EQ(worker.state().digest(), before);
  EXPECT_EQ(worker.state().applied_steps(), 0);
}

TEST(Worker, ShorterSequencesThanTheContextAreTrainedAndEvaluated) {
  Config config = trained_on_sums(llama_style());
  config.data.sequence = 7;
  const History short_ones = history_of(config, 2);
  EXPECT_LT(short_ones.losses[1], 6);
  EXPECT_GT(short_ones.losses[1], 3);
}

}  // namespace
}  // namespace mindpipe
