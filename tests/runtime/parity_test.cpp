// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "runtime/parity_cases.h"
#include "runtime/plain_loop.h"

namespace mindpipe {
namespace {

/// Shards of tensor and data, samples and micro-batches of a shard, model, precision, optimizer, and whether
/// gradients are clipped and labels smoothed.
enum {
  plain_tensor,
  plain_data,
  plain_samples,
  plain_micro_batches,
  plain_style,
  plain_precision,
  plain_optimizer,
  plain_clip,
  plain_dimensions
};
using PlainChoice = std::array<int, plain_dimensions>;

Config plain_config(const PlainChoice& choice) {
  static constexpr std::array tensor_shards{1, 2, 3, 4, 6, 8};
  const int data_shards = choice[plain_data] + 1, micro_batches = choice[plain_micro_batches] + 1;
  Config c = tiny(static_cast<Style>(choice[plain_style]),
                  tensor_shards[static_cast<std::size_t>(choice[plain_tensor])], data_shards);
  c.train.micro_batch = choice[plain_samples] + 1;
  c.train.batch = c.train.micro_batch * micro_batches * data_shards;
  c.train.precision = choice[plain_precision] == 0 ? Precision::f32 : Precision::bf16;
  c.optimizer.kind = choice[plain_optimizer] == 0 ? OptimizerKind::adamw : OptimizerKind::sgd;
  c.optimizer.momentum = choice[plain_optimizer] == 1 ? 0 : 0.9;
  c.optimizer.nesterov = choice[plain_optimizer] == 3;
  if (choice[plain_clip] == 1) {
    c.train.clip = 0;
    c.train.label_smoothing = 0;
  }
  return resolve(c);
}

/// What covering choices of this many ranks cover, as a line of tests/golden/covering.txt has it.
std::string covered_by(int ranks) {
  const std::vector<Choice> choices = covering_choices(ranks, style_count, shardings);
  std::set<std::array<int, 4>> pairs;
  for (const Choice& choice : choices)
    for (int a = 0; a < dimensions; ++a)
      for (int b = a + 1; b < dimensions; ++b) pairs.insert({a, choice[a], b, choice[b]});
  return fmt::format("{} ranks: {} dimensions, {} pairs in {} layouts", ranks, static_cast<int>(dimensions),
                     pairs.size(), choices.size());
}

TEST(Parity, LayoutsCoverThePairsOfTheFile) {
  std::ifstream file(MINDPIPE_SOURCE_DIR "/tests/golden/covering.txt");
  for (const int ranks : {1, 2, 3, 4, 8}) {
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(covered_by(ranks), line);
  }
}

TEST(Parity, OneRankGivesTheBitsOfAPlainLoop) {
  std::vector<PlainChoice> choices;
  for_each_choice<plain_dimensions>({6, 8, 2, 3, style_count, 2, 4, 2},
                                    [&](const PlainChoice& choice) { choices.push_back(choice); });
  choices = covering<plain_dimensions>(choices);
  for (const PlainChoice& choice : choices) {
    const Config config = plain_config(choice);
    const Outcome plain = PlainLoop(config).run(10);
    EXPECT_TRUE(std::isfinite(plain.losses.back()) && plain.losses.back() != plain.losses.front())
        << describe(config);
    EXPECT_EQ(difference(outcome_of(config, {}, 10), plain), "") << describe(config);
  }
  std::printf("%zu cases of 10 steps\n", choices.size());
}

/// Two shards of different pictures, two micro-batches each.
TEST(Parity, StatisticsOfAnotherShardOrInTheNormAreNoticed) {
  const Config config = resolve(tiny(Style::wide_resnet, 1, 2, 2));
  const Outcome outcome = outcome_of(config, {}, 2);
  EXPECT_EQ(difference(outcome, PlainLoop(config).run(2)), "");
  EXPECT_THAT(difference(outcome, PlainLoop(config, {}, true).run(2)),
              ::testing::StartsWith("gradient norm of step 0"));
  // The second shard norms with what the first one found: its micro-batches are numbers 2 and 3 of four.
  std::vector<std::vector<float>> found;
  std::size_t call = 0;
  const std::size_t of_pass = 2 * 3 + 1;  // norms of a forward
  Mistakes shared;
  shared.batch_statistics = [&](BatchStatisticsOperands& o) {
    const std::size_t micro_batch = call / of_pass % 4, at = call++ % (2 * of_pass);
    float* statistics = o.statistics.as<float>();
    if (micro_batch < 2) {
      found.resize(2 * of_pass);
      Memory memory(Memory::Kind::host);
      make_cpu_backend(memory, 1, "auto")->batch_statistics(o);
      found[at].assign(statistics, statistics + o.statistics.count());
    } else {
      std::copy(found[at].begin(), found[at].end(), statistics);
    }
    return false;
  };
  EXPECT_THAT(difference(outcome, PlainLoop(config, shared).run(2)), ::testing::StartsWith("loss of step 0"));
  call = 0;
  Worker worker(config, {}, make_run_plan(config),
                [&](const Config&, Memory& memory, int threads, const World&) -> std::unique_ptr<Backend> {
                  return std::make_unique<WrongBackend>(make_cpu_backend(memory, threads, "auto"), shared);
                });
  Outcome mistaken;
  train_some(worker, 2, mistaken);
  EXPECT_THAT(difference(mistaken, outcome), ::testing::StartsWith("loss of step 0"));
}

TEST(Parity, AnotherSeedOrClipOrShardGivesOtherBits) {
  const Config config = resolve(tiny(Style::gpt2, 2, 2));
  const Outcome outcome = outcome_of(config, {}, 2);
  EXPECT_EQ(difference(outcome_of(config, {}, 2), outcome), "");
  Config seed = config, clip = config, shards = config;
  seed.seed = 12;
  clip.train.clip = 0.4;
  shards.reproducible.tensor = 1;
  for (const Config& other : {seed, clip, shards})
    EXPECT_NE(outcome_of(resolve(other), {}, 2).state, outcome.state);
}

}  // namespace
}  // namespace mindpipe
