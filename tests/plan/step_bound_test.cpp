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

/// What the stages have beside tapes and buffers, at least with an order and as planned: all together, or one
/// alone whose bound is too high.
std::pair<std::int64_t, std::int64_t> beside_tapes(const Outline& outline, const Order& order,
                                                   const PlannedStep& step) {
  const std::vector<std::int64_t> all = least_memory(outline, order, {}),
                                  tapes = least_tapes(outline, order, {});
  std::int64_t least = 0, planned = 0;
  for (int stage = 0; stage < outline.stages; ++stage) {
    const RankMemory& rank = step.placement.ranks[stage];
    const std::int64_t of_stage = rank.total() - rank.bytes[static_cast<int>(MemoryClass::activations)] -
                                  rank.bytes[static_cast<int>(MemoryClass::boundary)];
    if (all[stage] - tapes[stage] > of_stage) return {all[stage] - tapes[stage], of_stage};
    least += all[stage] - tapes[stage];
    planned += of_stage;
  }
  return {least, planned};
}

TEST(StepBound, IsAboveNoneOfTenThousandSimulatedSteps) {
  std::mt19937 random(5);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  int close = 0, shared = 0, close_shared = 0, outlines = 0, searched = 0;
  for (unsigned seed = 0; outlines < 10'000; ++seed) {
    DrawnStep drawn(seed, 4);
    drawn.outline.part_bytes = 1 << (14 + below(9));
    if (schedule_named(drawn.schedule) == ScheduleKind::searched && ++searched > 30) continue;  // 0.3 s each
    ++outlines;
    const Network network = drawn_network(random);
    const bool halves = row_of(schedule_named(drawn.schedule)).splits_backward;
    const Order order = order_of_step(drawn.outline, schedule_named(drawn.schedule), network, {}, Fit::rough);
    const PlannedStep planned = plan_step(drawn.outline, order, network);
    const std::int64_t step = planned.expected.step;
    const StepBound bound(drawn.outline, network, halves);
    ASSERT_LE(bound.of(drawn.outline.first_block), step) << drawn.schedule << ", seed " << seed;
    ASSERT_LE(bound.of(order), step) << drawn.schedule << ", seed " << seed;
    const Order whole = make_order(schedule_named(drawn.schedule), request_of(drawn.outline));
    for (const Order& one : {order, whole}) {
      const auto [least, bytes] = beside_tapes(drawn.outline, one, planned);
      ASSERT_LE(least, bytes) << drawn.schedule << ", seed " << seed;
      if (drawn.outline.sharded_gradients) ++shared;
      if (drawn.outline.sharded_gradients && least * 100 >= bytes * 70) ++close_shared;
    }
    close += bound.of(order) * 10 > step * 8 ? 1 : 0;
  }
  EXPECT_GT(close, 1'000) << "a bound far below every step leaves nothing out";
  EXPECT_GT(4 * close_shared, 3 * shared) << "gradients in slabs are most of what lies beside tapes";
}

}  // namespace
}  // namespace mindpipe
