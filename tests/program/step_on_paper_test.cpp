#include "program/step_on_paper.h"

#include <gtest/gtest.h>

#include "program/drawn_steps.h"

// What is known of a step before its lists are written.
namespace mindpipe {
namespace {

TEST(StepOnPaper, LastsInItsRoomsAsItsListsDo) {
  int others_in_rooms = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const DrawnStep drawn(seed, 4);
    if (schedule_named(drawn.schedule) == ScheduleKind::searched) continue;  // 0.3 s each
    Network network;
    network.message = {.latency = 300 + 400 * (seed % 7), .picoseconds_per_byte = 1000.0 * (seed % 5)};
    network.data = {.latency = 200, .picoseconds_per_byte = 3.0 + seed % 11};
    const Order order = order_of_step(drawn.outline, schedule_named(drawn.schedule), network, {}, Fit::rough);
    StepOnPaper step(drawn.outline, order, network);
    const std::int64_t with_all_rooms = step.with_all_rooms();
    const StepTimes times = step.in_rooms();
    const PlannedStep planned = step.write();
    ASSERT_EQ(times.step, planned.expected.step) << drawn.schedule << ", seed " << seed;
    ASSERT_EQ(times.busy, planned.expected.busy) << drawn.schedule << ", seed " << seed;
    std::int64_t actions = 0;
    for (const std::vector<Action>& list : planned.program.ranks) actions += std::ssize(list);
    ASSERT_EQ(step.actions(), actions) << drawn.schedule << ", seed " << seed;
    others_in_rooms += times.step != with_all_rooms ? 1 : 0;
  }
  EXPECT_GT(others_in_rooms, 10) << "rooms are never few";
}

}  // namespace
}  // namespace mindpipe
