// thorough ranks: 4
#include <gtest/gtest.h>

#include "plan/largest_memory.h"
#include "plan/layout_search.h"
#include "plan/searched_settings.h"
#include "runtime/planned_run.h"
#include "runtime/predicted.h"
#include "runtime/ranks.h"

// Runs whose tapes the planner chose, within less and less memory.
namespace mindpipe {
namespace {

constexpr int limits = 30;

/// Twelve blocks that have a choice, on four stages, by each schedule in turn.
Config run_of(int number) {
  Config c = small_run();
  c.model.gpt.layers = 6;
  c.grid = {1, 4, 1, 1};
  c.train.batch = 16;
  const ScheduleKind kinds[] = {ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved,
                                ScheduleKind::zero_bubble};
  c.schedule.kind = kinds[number % std::size(kinds)];
  if (c.schedule.kind == ScheduleKind::interleaved) c.schedule.chunks = 2;
  return resolve(c);
}

TEST(ChosenTapes, OfThirtyLimitsHaveTheBitsOfKeepingAllAndTheMemoryThatWasPlanned) {
  const ThreeSteps kept = train_three_steps(run_of(0), make_run_plan(run_of(0)));
  int swapping = 0, recomputing = 0;
  for (int number = 0; number < limits; ++number) {
    Config c = run_of(number);
    const std::int64_t least = largest_memory(c, WhichBlocks::block),
                       most = largest_memory(c, WhichBlocks::none);
    c.memory.device_limit = least + (most - least) * (number + 1) / limits;
    const SearchFreedom free{.recompute = true, .swap = number / 3 % 2 == 0};  // on CPUs copies seem hidden
    const LayoutSearch search = search_layouts(c, all_ranks().size, free);
    ASSERT_FALSE(search.best.empty()) << number;
    const Config chosen = with_layout(c, search.all[search.best.front()].layout);
    swapping += chosen.train.swap.any() ? 1 : 0;
    recomputing += chosen.train.recompute.any() ? 1 : 0;
    EXPECT_LE(largest_memory(chosen, chosen.train.recompute), c.memory.device_limit);
    EXPECT_EQ(train_three_steps(chosen, make_run_plan(chosen)), kept)
        << words_of(layout_of(chosen), {.recompute = true, .swap = true});
  }
  EXPECT_GE(swapping, limits / 6);
  EXPECT_GE(recomputing, limits / 6);
}

}  // namespace
}  // namespace mindpipe
