#include "program/choose_rooms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/check.h"
#include "program/sample_space.h"

namespace mindpipe {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A wish on 8 stages, for 240 subnets of 24 candidates a block.
RoomsOnPaper chosen(const RoomWishes& wishes, int micro_batches, Draw draw) {
  const Outline outline = sample_space(8, 24, micro_batches);
  return choose_rooms(outline, sample_network(micro_batches), wishes, sample_subnets(outline, draw, 240, 1));
}

TEST(ChooseRooms, TakesTheFewestThatCostAPercent) {
  for (const int micro_batches : {1, 4}) {
    const RoomsOnPaper found = chosen({}, micro_batches, Draw::permutation);
    const int all = 16 * micro_batches;
    EXPECT_LE(found.time, found.with_all * 1.03);  // admission, slots and slabs, a percent each at most
    EXPECT_LE(found.rules.admission, 16);
    EXPECT_THAT(found.rules.slots, Each(Ge(micro_batches)));
    EXPECT_LT(std::accumulate(found.rules.slots.begin(), found.rules.slots.end(), 0), 8 * all / 2);
    EXPECT_GT(found.rules.slots.front(), found.rules.slots.back()) << "later stages need fewer";
    EXPECT_THAT(found.rules.slabs, Each(testing::Le(3)));
  }
}

TEST(ChooseRooms, CostsAPercentAtMostOnAnyNumberOfStages) {
  for (const int stages : {2, 3, 6, 8, 10})
    for (const int micro_batches : {1, 4})
      for (const Draw draw : {Draw::uniform, Draw::permutation}) {
        const Outline outline = sample_space(stages, 12, micro_batches);
        const RoomsOnPaper found = choose_rooms(outline, sample_network(micro_batches), {.window = 16},
                                                sample_subnets(outline, draw, 120, 1));
        EXPECT_LE(found.time, found.with_all + found.with_all / 100)
            << stages << " stages, " << micro_batches << " micro-batches";
      }
}

TEST(ChooseRooms, TellsWhatFewSubnetsInFlightCost) {
  const RoomsOnPaper found = chosen({.admission = 1}, 1, Draw::permutation);
  EXPECT_GT(found.time, 2 * found.with_all);
}

TEST(ChooseRooms, KeepsToWhatIsSaid) {
  const RoomsOnPaper found = chosen({.admission = 12, .slots = 9}, 4, Draw::permutation);
  EXPECT_EQ(found.rules.admission, 12);
  EXPECT_THAT(found.rules.slots, Each(9));
  EXPECT_GT(found.time, found.with_all);
}

TEST(ChooseRooms, HasRoomForAllGradientsOfAGroupThatIsUpdatedTogether) {
  EXPECT_THAT(chosen({.order = SubnetOrder::bulk}, 1, Draw::uniform).rules.slabs, Each(8));
}

TEST(ChooseRooms, RefusesFewerSlotsThanASubnetHasMicroBatches) {
  EXPECT_THAT([] { chosen({.slots = 3}, 4, Draw::uniform); },
              ThrowsMessage<Error>(AllOf(HasSubstr("supernet.slots is 3"), HasSubstr("take at least 4"))));
  EXPECT_THAT([] { chosen({.order = SubnetOrder::bulk, .slots = 7}, 4, Draw::uniform); },
              ThrowsMessage<Error>(HasSubstr("take at least 8")));
}
TEST(ChooseRooms, RefusesAGroupThatIsNotAdmittedWhole) {
  EXPECT_THAT([] { chosen({.order = SubnetOrder::bulk, .admission = 5}, 1, Draw::uniform); },
              ThrowsMessage<Error>(HasSubstr("take at least 8")));
}

}  // namespace
}  // namespace mindpipe
