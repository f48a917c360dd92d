// thorough
#include "plan/step_bound.h"

#include <gtest/gtest.h>

#include <random>

#include "program/drawn_steps.h"

namespace mindpipe {
namespace {

/// Links of a few of a block's passes down to none.
Network drawn_network(std::mt19937& random) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const auto link = [&] { return Link{below(3) * 100, 10.0 * below(2000)}; };
  Network network;
  network.message = link();
  network.data = link();
  network.grid = link();
  network.copies = link();
  network.tensor = link();
  network.longest_part = 64 << (10 + below(7));
  network.calls.of_sum = 1 + below(6);
  network.calls.of_gather = 1 + below(3);
  return network;
}

TEST(StepBound, IsAboveNoneOfTenThousandSimulatedSteps) {
  std::mt19937 random(5);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  int close = 0, outlines = 0, searched = 0;
  for (unsigned seed = 0; outlines < 10'000; ++seed) {
    DrawnStep drawn(seed, 4);
    drawn.outline.part_bytes = 1 << (14 + below(9));
    if (schedule_named(drawn.schedule) == ScheduleKind::searched && ++searched > 30) continue;  // 0.3 s each
    ++outlines;
    const Network network = drawn_network(random);
    const bool halves = row_of(schedule_named(drawn.schedule)).splits_backward;
    const Order order = order_of_step(drawn.outline, schedule_named(drawn.schedule), network, {}, Fit::rough);
    const std::int64_t step = plan_step(drawn.outline, order, network).expected.step;
    const StepBound bound(drawn.outline, network, halves);
    ASSERT_LE(bound.of(drawn.outline.first_block), step) << drawn.schedule << ", seed " << seed;
    ASSERT_LE(bound.of(order), step) << drawn.schedule << ", seed " << seed;
    close += bound.of(order) * 10 > step * 8 ? 1 : 0;
  }
  EXPECT_GT(close, 1'000) << "a bound far below every step leaves nothing out";
}

}  // namespace
}  // namespace mindpipe
