#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "plan/memory_limits.h"

// Plans in which tapes of some blocks wait on the host.
namespace mindpipe {
namespace {

RunPlan plan_of(std::vector<std::string> settings) {
  for (const char* setting :
       {"device.kind=cuda", "grid.pipeline=4", "grid.data=1", "grid.tensor=1", "reproducible.tensor=1",
        "reproducible.data=1", "train.batch=16", "train.micro_batch=1"})
    settings.insert(settings.begin(), setting);
  return make_run_plan(read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/bert-large.yaml", settings));
}

std::int64_t tapes_of(const RunPlan& plan, int stage) {
  return plan.most_memory(stage)[static_cast<int>(MemoryClass::activations)];
}

TEST(Swaps, TakeTapesOffTheDeviceAndPutThemOnTheHost) {
  const RunPlan kept = plan_of({}), swapped = plan_of({"train.swap=block"});
  EXPECT_LT(tapes_of(swapped, 0), tapes_of(kept, 0) * 7 / 10);
  EXPECT_GT(swapped.most_on_host(0), tapes_of(kept, 0) / 2);
  EXPECT_EQ(swapped.segments_on_host(0), swapped.most_on_host(0));
  EXPECT_EQ(swapped.most_on_host(3), 0) << "the last stage has one tape";
  EXPECT_EQ(kept.most_on_host(0), 0);
  // What outlines say of bytes is what runs take, but for the alignment of tensors and what crosses cuts.
  const std::int64_t on_paper = swapped.training.placement.ranks[0].on_host;
  EXPECT_NEAR(static_cast<double>(on_paper), static_cast<double>(swapped.most_on_host(0)),
              0.01 * static_cast<double>(on_paper));
}

TEST(Swaps, OfSomeBlocksAreNamedByNumbers) {
  const RunPlan one = plan_of({"train.swap=[3]"}), two = plan_of({"train.swap=[1, 3]"});
  EXPECT_EQ(one.outline.swapped[3], 1);
  EXPECT_EQ(one.outline.swapped[1], 0);
  EXPECT_EQ(two.segments_on_host(0), 2 * one.segments_on_host(0));
  EXPECT_LT(tapes_of(two, 0), tapes_of(one, 0));
}

TEST(Swaps, BesideRecomputedBlocksAreLeftOutOfThese) {
  const RunPlan mixed = plan_of({"train.swap=[1, 3]", "train.recompute=block"}),
                again = plan_of({"train.recompute=block"});
  const RunPlan kept = plan_of({});
  EXPECT_EQ(mixed.outline.cost(1).backward, kept.outline.cost(1).backward);
  EXPECT_EQ(mixed.outline.cost(1).saved, kept.outline.cost(1).saved);
  EXPECT_EQ(mixed.outline.cost(2).backward, again.outline.cost(2).backward);
  EXPECT_GT(mixed.outline.cost(2).backward, kept.outline.cost(2).backward);
}

TEST(Swaps, KeepTheLimitOfTheHost) {
  const RunPlan plan = plan_of({"train.swap=block"});
  EXPECT_NO_THROW(require_host_fit(plan, plan.most_on_host(0)));
  try {
    require_host_fit(plan, plan.most_on_host(0) - 1);
    FAIL() << "a host that is too small";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::out_of_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("of swapped tapes on its host"));
  }
}

TEST(Swaps, WhereEveryStageHasOneTapeAreRefused) {
  const ChosenBlocks all = WhichBlocks::block;
  EXPECT_THROW(require_stashes(plan_of({"train.swap=block", "grid.pipeline=1"}), all), Error);
  EXPECT_NO_THROW(require_stashes(plan_of({"train.swap=block"}), all));
  EXPECT_NO_THROW(require_stashes(plan_of({"grid.pipeline=1"}), WhichBlocks::none));
}

struct Refused {
  std::vector<std::string> settings;
  const char* sentence;
};

TEST(Swaps, ThatCannotBeAreRefusedWithASentence) {
  for (const Refused& refused : {
           Refused{{"train.swap=[99]"}, "train.swap names block 99, and the model's blocks are 0 to 49"},
           Refused{{"train.swap=[0]"}, "it has nothing that could wait on the host"},
           Refused{{"train.swap=[1, 3]", "train.recompute=[3]"}, "train.recompute computes block 3 again"},
           Refused{{"train.swap=block", "train.recompute=block"}, "name the blocks that are swapped"},
       }) {
    try {
      plan_of(refused.settings);
      ADD_FAILURE() << refused.sentence;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::bad_configuration);
      EXPECT_THAT(error.what(), testing::HasSubstr(refused.sentence));
    }
  }
}

}  // namespace
}  // namespace mindpipe
