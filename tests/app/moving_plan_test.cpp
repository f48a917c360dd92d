#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "app/plan/dry_run.h"
#include "app/plan/plan_schedules.h"
#include "config/config.h"
#include "core/check.h"
#include "plan/priced_blocks.h"
#include "plan/run_plan.h"

// What plans and dry runs say of trainings whose blocks may move.
namespace mindpipe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(SchedulesOfPlan, SayOnceWhySeveralAreRefused) {
  const Config moving = read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt-moving.yaml", {});
  PricedBlocks blocks;
  const std::string text = schedules_text(moving, make_run_plan(moving).outline, blocks);
  EXPECT_THAT(text, ContainsRegex("\nzb-h1 +1 +[0-9.]+ ms"));
  EXPECT_THAT(text,
              HasSubstr("\nrefused: interleaved (2 chunks), breadth-first (2 chunks), elastic (2 chunks), "));
  const std::string why = "each stage has 2 chunks";
  EXPECT_THAT(text, HasSubstr(why));
  EXPECT_EQ(text.find(why), text.rfind(why)) << text;
}

/// What a dry run of a small decoder on four stages says, whose blocks may move.
std::string moving_dry_run(std::vector<std::string> settings, const std::set<std::string>& open = {}) {
  for (const char* setting :
       {"grid.data=1", "grid.tensor=1", "reproducible.tensor=1", "reproducible.data=1", "schedule.kind=1f1b",
        "model.layers=6", "train.batch=16", "train.micro_batch=2"})
    settings.emplace_back(setting);
  settings.emplace_back("grid.pipeline=4");
  testing::internal::CaptureStdout();
  try {
    dry_run(read_config(std::string(MINDPIPE_SOURCE_DIR) + "/configs/gpt-tiny.yaml", settings), 4, open);
  } catch (const Error& error) {
    return testing::internal::GetCapturedStdout() + error.what();
  }
  return testing::internal::GetCapturedStdout();
}

TEST(DryRunOfMoves, AsksMovingStepsForTheMemoryOfTheHostToo) {
  std::vector<std::string> settings{"train.swap=[7]", "schedule.cuts=[4,7,10]",
                                    "repartition.at=[{step: 5, cuts: [4,8,10]}]",
                                    "memory.host_limit=2000000"};
  EXPECT_THAT(moving_dry_run(settings),
              HasSubstr("a rank of stage 1 will keep 2.3 MiB of swapped tapes on its host"));
  settings.back() = "memory.host_limit=2500000";
  EXPECT_THAT(moving_dry_run(settings), Not(HasSubstr("on its host, and")));
}

TEST(DryRunOfMoves, ChoosesTapesThatLeaveRoomForBlocksThatMayCome) {
  for (const char* limit : {"21500000", "22000000", "23000000"}) {
    const std::string text = moving_dry_run(
        {"repartition.every=10", "memory.device_limit=" + std::string(limit)}, {"train.recompute"});
    EXPECT_THAT(text, HasSubstr("\ntapes of blocks: stage 0 keeps 4, computes 0 again")) << limit;
    EXPECT_THAT(text, HasSubstr("computing all again: ")) << limit;
    EXPECT_THAT(text, Not(HasSubstr("memory: "))) << limit;
  }
}

}  // namespace
}  // namespace mindpipe
