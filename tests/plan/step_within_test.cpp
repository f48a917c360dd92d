// thorough
#include "plan/step_within.h"
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/memory_limits.h"

// Tapes of schedules that put weight gradients off, and groups of micro-batches, within memory.device_limit.
namespace mindpipe {
namespace {

/// GPT-2 of as many layers as divide evenly over the pieces of a V of eight stages.
Config even_gpt2(const char* schedule, std::int64_t limit, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"model.layers=32",
                                    "model.vocabulary=512",
                                    "device.kind=cuda",
                                    "device.description=h200",
                                    "grid.pipeline=8",
                                    "grid.data=1",
                                    "grid.tensor=1",
                                    "reproducible.data=1",
                                    "reproducible.tensor=1",
                                    "train.zero=0",
                                    "train.batch=16",
                                    "train.micro_batch=1",
                                    fmt::format("schedule.kind={}", schedule)};
  settings.insert(settings.end(), more.begin(), more.end());
  Config c = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt2-124m.yaml", settings);
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

TEST(StepWithin, HasTheFewestTapesWhereNothingFits) {
  for (const char* schedule : {"zb-h1", "zb-v", "v-half"}) {
    const RunPlan own = make_run_plan(even_gpt2(schedule, 0));
    const std::int64_t limit = limit_with_tapes(own, 0.05);
    const RunPlan fewest = make_run_plan(even_gpt2(schedule, limit));
    EXPECT_FALSE(fits(fewest, limit)) << schedule;
    for (const std::vector<Action>& actions : fewest.training.program.ranks)
      EXPECT_TRUE(std::ranges::none_of(actions, is_half)) << schedule;
    std::int64_t need = 0;
    for (int stage = 0; stage < fewest.outline.stages; ++stage)
      need = std::max(need, total_of(fewest.most_memory(stage)));
    for (const double more : {1.02, 1.1}) {
      const auto enough = static_cast<std::int64_t>(more * static_cast<double>(need));
      const RunPlan within = make_run_plan(even_gpt2(schedule, enough));
      EXPECT_TRUE(fits(within, enough)) << schedule << ' ' << more;
      EXPECT_LE(length_of(within), length_of(fewest)) << schedule << ' ' << more;
    }
  }
}

TEST(StepWithin, LeavesGroupsOfStepsThatAreTooLongAlone) {
  int limited_plans = 0;
  for (const char* batch : {"64", "96", "128"})
    for (const char* chunks : {"2", "4"})
      for (const double share : {0.0, 0.8, 1.0}) {
        const auto limited = [&](std::int64_t limit) {
          return even_gpt2("elastic", limit,
                           {"grid.pipeline=4", "grid.data=2", "reproducible.data=2",
                            fmt::format("train.batch={}", batch), fmt::format("schedule.chunks={}", chunks)});
        };
        const RunPlan own = make_run_plan(limited(0));
        const Config c = limited(share > 0 ? limit_with_tapes(own, share) : 0);
        const RunPlan plan = make_run_plan(c);
        if (!fits(plan, c.memory.device_limit)) continue;
        limited_plans += share > 0 ? 1 : 0;
        const auto with_most = [&](std::int64_t most) {
          return make_run_plan(c, Purpose::training, {}, 1, {}, {},
                               [&](std::int64_t at_least) { return at_least > most; });
        };
        const RunPlan same = with_most(length_of(plan));
        EXPECT_EQ(same.left_at, 0) << batch << ' ' << chunks;
        EXPECT_EQ(same.groups, plan.groups) << batch << ' ' << chunks;
        EXPECT_EQ(same.training.program.ranks, plan.training.program.ranks) << batch << ' ' << chunks;
        const RunPlan left = with_most(length_of(plan) - 1);
        EXPECT_GT(left.left_at, 0) << batch << ' ' << chunks << ' ' << share;
      }
  EXPECT_GT(limited_plans, 0);
}

}  // namespace
}  // namespace mindpipe
