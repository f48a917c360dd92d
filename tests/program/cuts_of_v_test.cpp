#include "program/schedules/cuts_of_v.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "program/make_program.h"
#include "program/partition.h"
#include "program/sample_outline.h"
#include "program/schedules/order_in_slab.h"

// Cuts of a V on drawn blocks.
namespace mindpipe {
namespace {

/// Blocks of unequal times and tapes in a V, balanced by time.
Outline drawn_blocks(int number) {
  std::mt19937 random(number);
  const auto below = [&](int end) { return static_cast<std::int64_t>(random() % end); };
  const int stages = 2 + static_cast<int>(below(4));
  Outline outline = stages_of_gpt2("zb-v", stages, stages * (1 + static_cast<int>(below(3))), {});
  outline.blocks.clear();
  outline.units_used.clear();
  outline.units.clear();
  outline.cuts.assign(1, {});
  std::vector<std::int64_t> costs;
  for (int block = 0; block < 4 * stages + static_cast<int>(below(20)); ++block) {
    BlockCost cost;
    cost.forward = 500 + below(1000);
    cost.backward_input = 500 + below(1000);
    cost.backward_weight = below(1000);
    cost.backward = cost.backward_input + cost.backward_weight;
    cost.saved = 50 + below(200);
    cost.put_off = below(80);
    outline.units.push_back({.values = 40, .gradients = 40, .state = 80});
    outline.add_block(cost, {block});
    outline.cuts.push_back({8, 0, 8, 0});
    costs.push_back(cost.passes());
  }
  outline.first_block = cuts_in_v(costs, stages);
  return outline;
}

/// A network whose messages take a fifth of a block's forward.
Network network() {
  Network network;
  network.message.latency = 200;
  return network;
}

/// Nanoseconds of a step, and bytes of tapes beyond what the schedule may keep.
std::pair<std::int64_t, std::int64_t> as_it_lies(const Outline& outline, ScheduleKind schedule) {
  const std::int64_t limit = most_tapes(outline, schedule);
  const OrderInSlab lies =
      in_slab(make_order(schedule, request_of(outline)), outline, PriceList(outline, network()), limit);
  return {lies.step, std::max<std::int64_t>(0, lies.bytes - limit)};
}

TEST(CutsOfV, AreBetterThanBalancedOnes) {
  int shorter = 0, nearer = 0;
  std::int64_t beyond = 0, balanced_beyond = 0;
  for (int draw = 0; draw < 60; ++draw) {
    const ScheduleKind schedule =
        std::vector{ScheduleKind::zero_bubble_v, ScheduleKind::half_v, ScheduleKind::dual_pipe_v}[draw % 3];
    Outline outline = drawn_blocks(draw);
    const auto balanced = as_it_lies(outline, schedule);
    const std::vector<int> cuts = cuts_of_v(outline, schedule, network());
    EXPECT_EQ(cuts, cuts_of_v(outline, schedule, network())) << draw;
    ASSERT_EQ(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()), cuts.end()) << draw;
    ASSERT_EQ(cuts.back(), outline.first_block.back()) << draw;
    outline.first_block = cuts;
    const auto found = as_it_lies(outline, schedule);
    shorter += found.first < balanced.first ? 1 : 0;
    nearer += found.second < balanced.second ? 1 : 0;
    beyond += found.second;
    balanced_beyond += balanced.second;
    if (found.second >= balanced.second) {
      EXPECT_LE(found.first, balanced.first) << draw;
    }
    EXPECT_LE(4 * found.first, 5 * balanced.first) << draw;
  }
  std::printf("shorter in %d, nearer to the limit in %d, beyond it %ld in place of %ld bytes\n", shorter,
              nearer, static_cast<long>(beyond), static_cast<long>(balanced_beyond));
  EXPECT_GE(shorter, 20);
  EXPECT_LE(4 * beyond, balanced_beyond);
}

}  // namespace
}  // namespace mindpipe
