// thorough
#include "program/drawn_groups.h"

namespace mindpipe {
namespace {

TEST(DrawnGroups, OfTheStagesOrMoreMakeSoundOrders) { expect_sound_orders(4000); }

}  // namespace
}  // namespace mindpipe
