#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "runtime/worker.h"

// The ledger that a dry run predicts, against what a run takes. Arenas are made as large as predicted and refuse to grow, so every run here that
// finishes shows that the prediction suffices; that their peaks come near shows that it is no more than needed.
namespace mindpipe {
namespace {

Config small() {
  Config config;
  config.run.dir = "unused";
  config.model.layers = 3, config.model.width = 96, config.model.heads = 4, config.model.context = 64, config.model.vocabulary = 300;
  config.data.train = {{"synthetic:arithmetic", 1}};
  config.train.batch = 8, config.train.micro_batch = 2, config.train.steps = 2;
  config.device.threads = 2;
  return config;
}

std::int64_t high_water_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

void expect_as_predicted(const Config& given) {
  const Config config = resolve(given);
  const RunPlan plan = make_run_plan(config);
  Worker worker(config, World{});
  Corpus corpus(config.data, Part::train, config.model, config.seed);
  for (int step = 0; step < 2; ++step) worker.step(corpus, step, step * config.train.batch, 1e-3);
  worker.evaluate(corpus, 1);
  for (MemoryClass kind : memory_classes) {
    const auto predicted = static_cast<double>(plan.memory[0][static_cast<int>(kind)]), taken = static_cast<double>(worker.memory().allocated(kind));
    EXPECT_NEAR(taken / predicted, 1, 0.05) << name_of(kind);
  }
  const auto at = [&](MemoryClass kind) { return static_cast<double>(plan.memory[0][static_cast<int>(kind)]); };
  EXPECT_GE(static_cast<double>(worker.executor().peak_activations()), 0.95 * at(MemoryClass::activations));
  EXPECT_GE(static_cast<double>(worker.executor().peak_scratch()), 0.95 * static_cast<double>(plan.rooms[0].scratch));
}

TEST(PredictedMemory, OfGpt2StyleInF32) { expect_as_predicted(small()); }

TEST(PredictedMemory, OfLlamaStyleInBf16) {
  Config config = small();
  config.model.positions = "rotary", config.model.norm = "rms", config.model.mlp = "swiglu", config.model.bias = false, config.model.tied = false;
  config.model.key_value_heads = 2, config.train.precision = "bf16";
  expect_as_predicted(config);
}

TEST(PredictedMemory, WithBlocksRecomputed) {
  Config config = small();
  config.train.recompute = "block";
  expect_as_predicted(config);
}

TEST(PredictedMemory, WithLogicalShardsAndPartialSums) {
  Config config = small();
  config.reproducible = {4, 4};
  expect_as_predicted(config);
}

TEST(PredictedMemory, OfATranslatorWithWeightGradientsPutOff) {
  Config config = small();
  config.model.kind = "translator", config.schedule.kind = "zb-h1";
  expect_as_predicted(config);
}

TEST(PredictedMemory, BeyondTheLimitIsRefusedWithTheLedger) {
  Config config = resolve(small());
  const RunPlan plan = make_run_plan(config);
  const std::int64_t total = std::accumulate(plan.memory[0].begin(), plan.memory[0].end(), std::int64_t{0});
  config.memory.device_limit = total - 100'000;
  try {
    Worker worker(config, World{});
    FAIL() << "a run that needs " << total << " bytes was given fewer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("memory.device_limit"));
  }
  config.memory.device_limit = total;
  Worker worker(config, World{});
}

TEST(PredictedMemory, IsWhatTheProcessGrowsBy) {
  Config config = small();
  config.model.width = 512, config.model.heads = 8, config.model.layers = 6, config.model.context = 256, config.train.micro_batch = 4;
  config.optimizer.kind = "adamw";
  config = resolve(config);
  const RunPlan plan = make_run_plan(config);
  const std::int64_t total = std::accumulate(plan.memory[0].begin(), plan.memory[0].end(), std::int64_t{0}), before = high_water_kib();
  Worker worker(config, World{});
  Corpus corpus(config.data, Part::train, config.model, config.seed);
  worker.step(corpus, 0, 0, 1e-3);
  const double grown = static_cast<double>(high_water_kib() - before) * 1024;
  EXPECT_NEAR(grown / static_cast<double>(total), 1, 0.05) << "predicted " << total << " bytes";
}

}  // namespace
}  // namespace mindpipe
