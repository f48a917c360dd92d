#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/make_program.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

Outline with_sharded_gradients(Outline outline, int data = 2) {
  outline.data = data;
  outline.sharded_optimizer = outline.sharded_gradients = true;
  return outline;
}

std::int64_t gradient_bytes(const PlannedStep& step, int rank = 0) {
  return step.placement.ranks[rank].bytes[static_cast<int>(MemoryClass::gradients)];
}

TEST(ShardedGradients, OneMicroBatchNeedsTwoSlabsAndThePartsThatMovedOut) {
  const PlannedStep step = make_program(with_sharded_gradients(equal_stages(1, 1, 1, {}, 6)), "1f1b");
  EXPECT_THAT(step.placement.ranks[0].slabs, ElementsAre(40, 40));
  EXPECT_EQ(gradient_bytes(step), 2 * 40 + 4 * 20) << "the last two blocks leave their parts where they are";
  std::vector<int> slabs, places;
  for (const Action& action : step.program.ranks[0])
    if (action.kind == ActionKind::reduce) {
      slabs.push_back(action.slab);
      places.push_back(action.apart);
    }
  EXPECT_THAT(slabs, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(places, ElementsAre(0, 1, 2, 3, -1, -1));
}

TEST(ShardedGradients, AChunkThatIsReducedMakesRoomForTheNext) {
  const Outline outline = equal_stages(2, 4, 2, {}, 3);
  const PlannedStep step = make_program(with_sharded_gradients(outline), "breadth-first");
  for (int rank : {0, 1}) {
    EXPECT_EQ(step.placement.ranks[rank].slabs.size(), 4u)
        << "a chunk's, and one whose sum is still under way";
    EXPECT_EQ(gradient_bytes(step, rank), 4 * 40 + 2 * 20);
  }
  EXPECT_EQ(gradient_bytes(make_program(with_sharded_gradients(outline, 4), "breadth-first")),
            4 * 40 + 2 * 10);
}

TEST(ShardedGradients, NothingIsSavedAndNothingLostWhereAllLiveAtOnce) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
    const PlannedStep step = make_program(with_sharded_gradients(equal_stages(2, 4, 1, {}, 3)), schedule);
    EXPECT_EQ(gradient_bytes(step), 3 * 40) << schedule;
    for (const auto& [use, place] : step.placement.ranks[0].gradients)
      EXPECT_FALSE(place.moves_out) << schedule << ' ' << use.block;
  }
}

TEST(ShardedGradients, SmallBlocksDoNotDriveALargeOneOutOfItsSlab) {
  Outline outline = with_sharded_gradients(equal_stages(1, 1, 1, {}, 4));
  outline.units[3].gradients = 400;  // moving its part out would take 200
  const PlannedStep step = make_program(outline, "1f1b");
  EXPECT_EQ(gradient_bytes(step), 400 + 40 + 40 + 20);
  outline.units[0].gradients = 400;  // the table's other use, which comes last, is worth it
  EXPECT_EQ(gradient_bytes(make_program(outline, "1f1b")), 400 + 200 + 40 + 40);
}

TEST(ShardedGradients, CountersAndPartsOfTheSequenceLieInTheSlabToo) {
  Outline outline = with_sharded_gradients(equal_stages(1, 4, 1, {}, 2));
  outline.shards = 4;
  for (UnitCost& unit : outline.units) unit.sequence_parts = 16;
  EXPECT_EQ(gradient_bytes(make_program(outline, "1f1b")), 2 * (3 * 40 + 16));
}

TEST(ShardedGradients, SlabsNeverSlowAStepDown) {
  Network network;
  network.data = {1000, 30000};  // a block's sum takes 1600 ns, its backward 333
  const Outline outline = equal_stages(1, 1, 1, {}, 6);
  Outline whole = outline;
  whole.data = 2;
  whole.sharded_optimizer = true;
  for (const char* schedule : {"1f1b", "gpipe"})
    EXPECT_LE(make_program(with_sharded_gradients(outline), schedule, network).expected.step,
              make_program(whole, schedule, network).expected.step * 1.006);
}

TEST(ShardedGradients, EveryScheduleAndSizeIsSound) {
  for (int p : {1, 2, 5})
    for (int m : {1, 2, 6})
      for (const std::string& schedule : schedules_on(p)) {
        Outline outline = with_everything(equal_stages_for(schedule, p, m, {}, 2));
        outline.sharded_gradients = true;
        EXPECT_NO_THROW(make_program(outline, schedule)) << schedule << " p " << p << " m " << m;
      }
}

}  // namespace
}  // namespace mindpipe
