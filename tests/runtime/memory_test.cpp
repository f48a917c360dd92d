// thorough
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/memory_limits.h"
#include "runtime/predicted.h"
#include "runtime/resident.h"

// The ledger that a dry run predicts, against what a run on one rank takes; memory_mpi_test.cpp does the same
// for several.
namespace mindpipe {
namespace {

/// With arenas as predicted, and not a byte beyond, the run ends, and what it used is what was predicted.
/// Only where that fails arenas get 30 % more, to say how much is missing.
void expect_as_predicted(Config config) {
  config.device.threads = 2;
  config = resolve(config);
  const RunPlan plan = make_run_plan(config);
  config.memory.device_limit = total_of(plan.memory[0][0]);
  try {
    Worker worker(config, World{}, plan);
    EXPECT_EQ(static_cast<std::int64_t>(worker.memory().allocated()), total_of(plan.memory[0][0]));
    train_a_little(worker);
    EXPECT_EQ(complaint(plan.memory[0][0], used_by(worker.memory())), "");
  } catch (const Error& error) {
    config.memory.device_limit = 0;
    Worker worker(config, World{}, with_more_memory(plan, 1.3));
    train_a_little(worker);
    ADD_FAILURE() << error.what() << "; " << complaint(plan.memory[0][0], used_by(worker.memory()));
  }
}

TEST(PredictedMemory, OfGpt2StyleInF32) { expect_as_predicted(small_run()); }
TEST(PredictedMemory, OfLlamaStyleInBf16) { expect_as_predicted(llama_run()); }

/// The device has room for masters and moments of two units.
TEST(PredictedMemory, WithStateOnTheHost) {
  for (Config config : {small_run(), llama_run()}) {
    config.memory.optimizer = StatePlace::host;
    expect_as_predicted(config);
  }
}

TEST(PredictedMemory, WithBlocksRecomputed) {
  Config config = small_run();
  config.train.recompute = WhichBlocks::block;
  expect_as_predicted(config);
}

TEST(PredictedMemory, WithLogicalShardsAndPartialSums) {
  Config config = small_run();
  config.reproducible = {4, 4};
  expect_as_predicted(config);
}

TEST(PredictedMemory, OfATransformerWithWeightGradientsPutOff) {
  Config config = small_run();
  become_transformer(config);
  config.schedule.kind = ScheduleKind::zero_bubble;
  expect_as_predicted(config);
}

TEST(PredictedMemory, OfABertInBf16) {
  Config config = bert_run();
  config.train.precision = Precision::bf16;
  expect_as_predicted(config);
}

TEST(PredictedMemory, OfAPostNormTransformerWithWeightGradientsPutOff) {
  Config config = post_norm_run();
  config.schedule.kind = ScheduleKind::zero_bubble;
  expect_as_predicted(config);
}

TEST(PredictedMemory, OfAVitWithPaddedRowsRecomputed) {
  Config config = vit_run();
  config.reproducible = {4, 2};
  config.train.recompute = WhichBlocks::block;
  expect_as_predicted(config);
}

TEST(PredictedMemory, BeyondTheLimitIsRefusedWithTheLedgerBeforeAnythingIsTaken) {
  Config config = resolve(wide_run());
  const RunPlan plan = make_run_plan(config);
  config.memory.device_limit = total_of(plan.memory[0][0]) - 1;
  const std::int64_t before = resident_bytes();
  try {
    Worker worker(config, World{}, plan);
    FAIL() << "a run that needs " << total_of(plan.memory[0][0]) << " bytes was given fewer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    for (const char* text : {"memory.device_limit", "values", "gradients", "optimizer", "activations",
                             "boundary", "workspace", "total"})
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
  }
  EXPECT_LT(resident_bytes() - before, total_of(plan.memory[0][0]) / 100);
}

TEST(PredictedMemory, OfRanksThatShareAMachineIsItsSum) {
  Config config = small_run();
  config.grid.pipeline = 2;
  config = resolve(config);
  const RunPlan plan = make_run_plan(config);
  const std::vector<Coord> both{coord_at({1, 1, 2, 1}, 0), coord_at({1, 1, 2, 1}, 1)};
  const std::int64_t needed = total_of(plan.memory_of(both[0])) + total_of(plan.memory_of(both[1]));
  require_fit_here(plan, both, {needed, "the machine"});
  require_fit_here(plan, both, {0, "not known"});
  require_fit_here(plan, {both[0]}, {needed - 1, "the machine"});
  try {
    require_fit_here(plan, both, {needed - 1, "the limit of this job"});
    FAIL() << "two ranks were given less than they need together";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("the 2 ranks on this machine"));
    EXPECT_THAT(error.what(), testing::HasSubstr("the limit of this job is"));
  }
}

TEST(PredictedMemory, IsWhatTheProcessGrowsBy) {
  for (Config config : {wide_run(), wordy_run()})
    for (Precision precision : {Precision::f32, Precision::bf16}) {
      config.train.precision = precision;
      config = resolve(config);
      EXPECT_EQ(growth_complaint(config, World{}, make_run_plan(config)), "")
          << text_model(config).vocabulary << " words, " << name_of(precision);
    }
}

TEST(PredictedMemory, OfABillionParametersTakesNextToNothing) {
  Config config = wide_run();
  text_model(config).layers = 20;
  text_model(config).width = 2048;
  text_model(config).heads = 16;
  text_model(config).mlp_width = 8192;
  text_model(config).context = 1024;
  config.grid = {1, 4, 2, 2};
  config.train.batch = 64;
  config = resolve(config);
  const std::int64_t before = high_water_after_reset();
  const RunPlan plan = make_run_plan(config);
  EXPECT_GT(plan.parameters, 1'000'000'000);
  EXPECT_GT(total_of(plan.memory[0][0]), std::int64_t{1} << 30);
  EXPECT_LT(high_water_bytes() - before, std::int64_t{32} << 20);
}

}  // namespace
}  // namespace mindpipe
