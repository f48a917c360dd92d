#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "core/text.h"
#include "program/clock/task_graph.h"
#include "program/drawn_groups.h"

// Orders in groups of micro-batches, drawn by lot: sound with groups of p or more, and not always with less.
namespace mindpipe {
namespace {

using ::testing::HasSubstr;

/// Whether an order stands still even if its messages have all the room they want.
bool stands_still(const OrderRequest& request) {
  const Outline outline = equal_stages(request.stages, request.micro_batches, request.chunks);
  try {
    plan_step(outline, elastic_order(request));
  } catch (const Error&) {
    return true;
  }
  return false;
}

/// The first of the draws that drawn_groups_test.cpp tries.
TEST(Elastic, OrdersWithGroupsOfTheStagesOrMoreAreSound) { expect_sound_orders(1000); }

TEST(Elastic, SmallerGroupsOftenStandStill) {
  GroupLots lots("elastic orders that stand still");
  int still = 0, drawn = 0;
  while (still < 50 && drawn < 2000) {
    OrderRequest request{
        .stages = lots.from(2, 8), .micro_batches = lots.from(4, 24), .chunks = lots.from(2, 4)};
    const int below = std::min(request.stages, request.micro_batches) - 1;
    request.groups = {lots.groups(1, request.micro_batches), lots.groups(1, request.micro_batches)};
    const auto is_small = [&](const std::vector<int>& sizes) {
      return std::any_of(sizes.begin(), sizes.end(), [&](int size) { return size <= below; });
    };
    if (!is_small(request.groups.forward) && !is_small(request.groups.backward)) continue;
    ++drawn;
    EXPECT_THROW(make_order(ScheduleKind::elastic, request), Error) << text_of(request);
    still += stands_still(request) ? 1 : 0;
  }
  EXPECT_EQ(still, 50) << "of " << drawn;
  std::printf("50 of %d orders with smaller groups stand still\n", drawn);
}

TEST(Elastic, GroupsOfTheStagesAreInterleaved) {
  for (int p = 1; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 24; m += p) {
        OrderRequest request{.stages = p, .micro_batches = m, .chunks = v};
        request.groups = {std::vector<int>(m / p, p), std::vector<int>(m / p, p)};
        const Outline outline = equal_stages(p, m, v);
        EXPECT_EQ(elastic_order(request), interleaved_order(request)) << text_of(request);
        EXPECT_EQ(make_program(outline, ScheduleKind::elastic, {}, request.groups).program.ranks,
                  make_program(outline, "interleaved").program.ranks)
            << text_of(request);
      }
}

TEST(Elastic, OneGroupOfAllHoldsFewerTapesThanBreadthFirst) {
  for (int p = 1; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 24; ++m) {
        const OrderRequest request{.stages = p, .micro_batches = m, .chunks = v};
        const int tapes = most_tapes(elastic_order(request)[0]);
        EXPECT_LE(tapes, std::min(v * m, (v - 1) * m + 2 * p)) << text_of(request);
      }
}

std::string refusal_of(const MicroBatchGroups& groups, int stages, int micro_batches) {
  try {
    require_groups(groups, stages, micro_batches);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Elastic, GroupsThatDoNotFitAreRefusedWithTheNearestThatDo) {
  EXPECT_EQ(refusal_of({{8, 8}, {4, 10}}, 4, 16),
            "schedule.groups.backward is [4, 10], and a rank has 16 micro-batches on 4 stages: groups add up "
            "to them, and each has 4 or more (the nearest that fit: [4, 12])");
  EXPECT_THAT(refusal_of({{2, 14}, {}}, 4, 16), HasSubstr("schedule.groups.forward is [2, 14]"));
  EXPECT_THAT(refusal_of({{2, 14}, {}}, 4, 16), HasSubstr("(the nearest that fit: [4, 12])"));
  EXPECT_THAT(refusal_of({{4, 4, 4, 4, 4}, {}}, 4, 16), HasSubstr("fit: [4, 4, 4, 4])"));
  EXPECT_THAT(refusal_of({{5, 5}, {}}, 4, 7), HasSubstr("fit: [7])"));
  EXPECT_THAT(refusal_of({{1, 1, 1}, {}}, 8, 3), HasSubstr("each has 3 or more (the nearest that fit: [3])"));
  EXPECT_THAT(refusal_of({{2147483647, 2147483647}, {}}, 2, 5), HasSubstr("fit: [3, 2])"));
  EXPECT_EQ(refusal_of({{8, 8}, {4, 12}}, 4, 16), "nothing was refused");
  EXPECT_EQ(refusal_of({}, 4, 16), "nothing was refused");
  GroupLots lots("groups that do not fit");
  for (int draw = 0; draw < 2000; ++draw) {
    const int stages = lots.from(1, 8), micro_batches = lots.from(1, 24);
    const std::vector<int> near = nearest_groups(lots.groups(1, lots.from(1, 40)), stages, micro_batches);
    EXPECT_EQ(refusal_of({near, near}, stages, micro_batches), "nothing was refused")
        << stages << ' ' << micro_batches << ' ' << joined(near);
  }
}

}  // namespace
}  // namespace mindpipe
