// thorough
#include "plan/step_within.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/memory_limits.h"

// Tapes of schedules that put weight gradients off, within memory.device_limit.
namespace mindpipe {
namespace {

/// GPT-2 of as many layers as divide evenly over the pieces of a V of eight stages.
Config even_gpt2(const char* schedule, std::int64_t limit) {
  Config c = read_config(
      std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml",
      {"model.layers=32", "model.vocabulary=512", "device.kind=cuda", "device.description=h200",
       "grid.pipeline=8", "grid.data=1", "grid.tensor=1", "reproducible.data=1", "reproducible.tensor=1",
       "train.zero=0", "train.batch=16", "train.micro_batch=1", fmt::format("schedule.kind={}", schedule)});
  c.memory.device_limit = limit;
  return c;
}

std::int64_t activations_of(const RunPlan& plan, int stage) {
  return plan.most_memory(stage)[static_cast<int>(MemoryClass::activations)];
}

/// The least limit that leaves each stage of a plan this share of its tapes.
std::int64_t limit_with_tapes(const RunPlan& plan, double share) {
  std::int64_t limit = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    limit = std::max(
        limit, total_of(plan.most_memory(stage)) -
                   static_cast<std::int64_t>((1 - share) * static_cast<double>(activations_of(plan, stage))));
  return limit;
}

std::int64_t length_of(const RunPlan& plan) { return plan.training.expected.step; }

TEST(StepWithin, SearchesAnOrderForTheMemoryThatThereIs) {
  const RunPlan own = make_run_plan(even_gpt2("searched", 0));
  std::int64_t before = 0;
  for (const double share : {0.75, 0.9, 1.0, 1.5}) {
    const std::int64_t limit = limit_with_tapes(own, share);
    const RunPlan within = make_run_plan(even_gpt2("searched", limit));
    EXPECT_TRUE(fits(within, limit)) << share;
    if (share >= 1) {
      EXPECT_LE(length_of(within), length_of(own)) << share;
    }
    if (before > 0) {
      EXPECT_LE(length_of(within), before) << share;
    }
    before = length_of(within);
  }
}

TEST(StepWithin, TakesTheOrderThatWasFoundBefore) {
  const RunPlan own = make_run_plan(even_gpt2("searched", 0));
  const Config c = even_gpt2("searched", limit_with_tapes(own, 0.9));
  const RunPlan first = make_run_plan(c);
  ASSERT_FALSE(first.training.found_order.empty());
  const RunPlan again =
      make_run_plan(c, Purpose::training, {}, 1, {}, {"passes.txt", first.training.found_order});
  EXPECT_EQ(again.training.found_order, "") << "searched again";
  EXPECT_EQ(again.training.program.ranks, first.training.program.ranks);
}

TEST(StepWithin, ComesNearToALimitThatNothingKeeps) {
  const RunPlan own = make_run_plan(even_gpt2("searched", 0));
  const std::int64_t limit = limit_with_tapes(own, 0.05);
  const RunPlan nearest = make_run_plan(even_gpt2("searched", limit));
  EXPECT_FALSE(fits(nearest, limit));
  EXPECT_LT(total_of(nearest.most_memory(0)), total_of(own.most_memory(0)));
}

}  // namespace
}  // namespace mindpipe
