#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/models/prices.h"
#include "plan/run_plan.h"
#include "program/choice_parts.h"
#include "spaces.h"
#include "supernet/sampler.h"

// Prices of a supernet stand in the outline before anything is planned with it.
namespace mindpipe {
namespace {

Config priced_run(const std::string& prices) {
  Config c;
  c.run.dir = "unused";
  c.data.train = {{"synthetic:arithmetic", 1}};
  c.model.kind = ModelKind::supernet;
  c.schedule.kind = ScheduleKind::causal;
  c.model.supernet.space = space_from(
      "{name: p, decoder: {blocks: [[attention-4, attention-8], [attention-4, attention-8], [glu, "
      "light-3-4], "
      "[light-3-4, identity], [light-3-4, identity], [light-3-4, identity]]}}");
  c.model.supernet.width = 32;
  c.model.supernet.context = c.data.sequence = 16;
  c.grid.pipeline = 2;
  c.train.batch = 8;
  c.train.micro_batch = 4;
  c.train.steps = 40;
  c.supernet.prices = prices;
  return resolve(c);
}

TEST(PricesOfPlans, ReplaceTheTimesOfPassesAndUpdatesOnly) {
  const RunPlan plan = make_run_plan(priced_run("h200")), paper = make_run_plan(priced_run("paper"));
  EXPECT_FALSE(plan.outline.prices_are_whole) << "nobody measured it";
  EXPECT_EQ(plan.outline.cost(1, 1).forward, 1'651'200);  // 4.8 x 344 us
  EXPECT_EQ(plan.outline.cost(1, 1).backward, 3'302'400);
  EXPECT_EQ(plan.outline.cost(4, 1).forward, 17'200);
  EXPECT_EQ(plan.outline.cost(0).forward, 17'200);
  const int attention = plan.outline.units_used[1][1].front(), table = plan.outline.units_used[0][0].front();
  EXPECT_EQ(plan.outline.units[attention].update, 16'512);
  EXPECT_TRUE(plan.outline.units[table].shared);
  EXPECT_EQ(plan.outline.units[table].update, 172);
  for (int block = 0; block < plan.outline.all_blocks(); ++block) {
    EXPECT_EQ(plan.outline.cuts[block], paper.outline.cuts[block]);
    EXPECT_EQ(plan.outline.cost(block).forward_sums, paper.outline.cost(block).forward_sums);
    EXPECT_EQ(plan.outline.cost(block).saved, paper.outline.cost(block).saved);
  }
  EXPECT_EQ(plan.evaluation.network.message.latency, paper.evaluation.network.message.latency);
}

TEST(PricesOfPlans, CutTheBlocksByTheirMean) {
  // Embedding, six blocks, head: two attentions cost more than all others together.
  EXPECT_THAT(make_run_plan(priced_run("h200")).outline.first_block, testing::ElementsAre(0, 2, 8));
  EXPECT_THAT(make_run_plan(priced_run("equal")).outline.first_block, testing::ElementsAre(0, 4, 8));
}

TEST(PricesOfPlans, AreWhatTheRoomsAreChosenBy) {
  const Config config = priced_run("equal");
  const RunPlan plan = make_run_plan(config);
  // 40 subnets of 2 micro-batches and 6.1 prices of 700 us, forward and backward; the gradients of each are
  // zeroed once.
  std::int64_t cleared = 0;
  for (const Subnet& subnet : first_subnets(config))
    for (int block = 0; block < plan.outline.all_blocks(); ++block)
      for_candidates(plan.outline, subnet.choice, block, [&](int candidate) {
        for (const int unit : plan.outline.units_used[block][candidate])
          if (!plan.outline.units[unit].shared) cleared += plan.outline.units[unit].clear;
      });
  EXPECT_GT(cleared, 0);
  EXPECT_EQ(plan.subnets->paper.one_stage, std::int64_t{40} * 2 * 3 * 61 * 70'000 + cleared);
}

}  // namespace
}  // namespace mindpipe
