// ranks: 2 4
#include <gtest/gtest.h>
#include <mpi.h>

#include "runtime/parity_cases.h"
#include "runtime/ranks.h"

namespace mindpipe {
namespace {

struct Zero : ::testing::Test {
  const World world = all_ranks();
  /// Two replicas of as many stages as there are ranks for; blocks of about equal size, larger than a chunk
  /// of statistics.
  Config wide(ScheduleKind schedule, int chunks, int of_shard) const {
    Config c = tiny(Style::llama, 1, 2, of_shard, 10);
    text_model(c).width = 128;
    text_model(c).mlp_width = 256;
    text_model(c).heads = 4;
    c.grid = {1, world.size / 2, 2, 1};
    c.schedule.kind = schedule;
    c.schedule.chunks = chunks;
    return c;
  }
};

std::int64_t gradients_of(const RunPlan& plan, int stage) {
  return plan.most_memory(stage)[static_cast<int>(MemoryClass::gradients)];
}

/// What a rank has allocated for gradients once it has run, against the plan of the same and against that of
/// ZeRO 1.
TEST_F(Zero, ShardedGradientsTakeWhatThePlanSaysAndLessThanWholeOnes) {
  for (const auto& [schedule, chunks, of_shard, most] :
       {std::tuple{ScheduleKind::one_forward_one_backward, 1, 1, 0.80},
        {ScheduleKind::breadth_first, 2, 2, 0.90},
        {ScheduleKind::one_forward_one_backward, 1, 3, 1.0}}) {
    Config c = wide(schedule, chunks, of_shard);
    c.train.zero = 2;
    c = resolve(c);
    Worker worker(c, world);
    worker.waiting().set_crowded(true);
    Outcome outcome;
    train_some(worker, 2, outcome);
    const int stage = worker.layout().coord.pipeline;
    const std::int64_t planned = gradients_of(worker.plan(), stage);
    // Of a unit's parts the largest is planned for; this rank's may be a chunk of statistics smaller.
    EXPECT_LE(static_cast<std::int64_t>(worker.memory().allocated(MemoryClass::gradients)), planned);
    EXPECT_GE(static_cast<double>(worker.memory().allocated(MemoryClass::gradients)),
              0.9 * static_cast<double>(planned));
    Config whole = c;
    whole.train.zero = 1;
    const double share =
        static_cast<double>(planned) / static_cast<double>(gradients_of(make_run_plan(whole), stage));
    EXPECT_LE(share, most) << describe(c) << ", stage " << stage;
    if (world.rank == 0)
      std::printf("gradients of ZeRO 2: %.2f of those of ZeRO 1 (%s)\n", share, describe(c).c_str());
  }
}

TEST_F(Zero, OneReplicaShardsNothing) {
  Config c = wide(ScheduleKind::one_forward_one_backward, 1, 1);
  c.grid.data = 1;
  c.grid.pipeline = world.size;
  c.train.zero = 2;
  const RunPlan sharded = make_run_plan(resolve(c));
  c.train.zero = 0;
  EXPECT_EQ(sharded.memory, make_run_plan(resolve(c)).memory);
}

/// A step leaves a share of each unit's values here: whoever reads them before they are settled is found.
TEST_F(Zero, NobodyReadsValuesBeforeTheyAreSettled) {
  Config c = wide(ScheduleKind::one_forward_one_backward, 1, 1);
  c.train.zero = 1;
  Worker worker(resolve(c), world);
  worker.waiting().set_crowded(true);
  BatchFeed feed(worker.config(), worker.layout());
  worker.steps().run(feed.at(0));
  const int unit = worker.stage().local_units().front();
  EXPECT_THROW(worker.residency().newest(unit, "value"), Error);
  worker.settle();
  EXPECT_TRUE(worker.residency().newest(unit, "value"));
  worker.steps().run(feed.at(1));
  EXPECT_NO_THROW(worker.evaluator().evaluate(feed.at(0)));
}

}  // namespace
}  // namespace mindpipe
