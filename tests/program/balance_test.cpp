#include "program/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "program/make_program.h"
#include "program/moving_step.h"
#include "program/partition.h"
#include "program/sample_outline.h"

namespace mindpipe {
namespace {

constexpr ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
using Slowness = std::vector<double>;

/// Eight stages of eight equal blocks each, over links on which a block's state travels in a forward.
struct Machine {
  Outline outline = equal_stages(8, 16, 1, {.forward = 8'000'000, .backward = 16'000'000}, 8);
  Network network;
  Machine() {
    network.message.picoseconds_per_byte = 10;
    for (UnitCost& unit : outline.units) {
      unit.moved = 800'000'000;
      unit.gradients = unit.moved / 3;
    }
    outline.part_bytes = most_part_bytes;
  }
  PlannedStep step(const std::vector<int>& cut, const Slowness& slower) const {
    Outline real = outline;
    real.first_block = cut;
    real.slower = slower;
    return plan_step(real, order_of_step(real, schedule, network), network);
  }
  /// What stages report of so many steps, each within some share of the truth.
  std::vector<std::int64_t> report(const std::vector<int>& cut, const Slowness& slower, std::int64_t steps,
                                   std::mt19937& random, double noise) const {
    std::uniform_real_distribution<double> share(1 - noise, 1 + noise);
    std::vector<std::int64_t> worked = step(cut, slower).expected.busy;
    for (std::int64_t& each : worked) each = std::llround(static_cast<double>(each * steps) * share(random));
    return worked;
  }
};

Slowness half_speed_of(int stage) {
  Slowness slower(8, 1.0);
  slower[static_cast<std::size_t>(stage)] = 2;
  return slower;
}

TEST(ABalance, MovesBlocksAwayFromAStageAtHalfSpeedAndBackAgain) {
  const Machine machine;
  const BalanceRule rule{.every = 5};
  Balance balance(machine.outline, machine.network, schedule, rule);
  std::vector<Balancing> found;
  std::mt19937 random(1);
  for (std::int64_t step = 5; step <= 200; step += rule.every) {
    const bool is_slow = step > 20 && step <= 100;
    // Blocks that are on their way by the report's first step have their passes there.
    const auto more = balance.hear(
        step,
        machine.report(balance.cut(), is_slow ? half_speed_of(3) : Slowness(8, 1.0), rule.every, random, 0));
    if (more) found.push_back(*more);
  }
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].cuts.back(), (std::vector<int>{0, 8, 17, 26, 30, 39, 48, 56, 64}));
  EXPECT_EQ(found[0].cuts.size(), 2u);
  EXPECT_LE(found[0].first_step + 1, 20 + 20) << "moved within 20 steps";
  // At half speed a stage has half the throughput: of 8 stages 7.5 are left.
  const double ideal = static_cast<double>(
                           machine.step(machine.outline.first_block, Slowness(8, 1.0)).expected.step) *
                       8 / 7.5,
               moved =
                   static_cast<double>(machine.step(found[0].cuts.back(), half_speed_of(3)).expected.step);
  RecordProperty("OfTheIdeal", fmt::format("{:.4f}", ideal / moved));
  EXPECT_GE(ideal / moved, 0.90);
  EXPECT_NEAR(static_cast<double>(found[0].after), moved, 0.05 * moved);
  EXPECT_EQ(found[1].cuts.back(), machine.outline.first_block) << "at full speed again: back";
  EXPECT_GE(found[1].first_step, 100);
  EXPECT_THAT(
      to_string(found[0]),
      testing::AllOf(testing::HasSubstr("stage 3 takes 1.7"),
                     testing::HasSubstr("the cut becomes 8 17 26 30 39 48 56 in 2 steps from step 33 on")));
}

TEST(ABalance, TakesNoiseForNoise) {
  const Machine machine;
  const BalanceRule rule{.every = 5};
  const std::vector<std::int64_t> worked =
      machine.step(machine.outline.first_block, Slowness(8, 1.0)).expected.busy;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> share(0.95, 1.05);
    Balance balance(machine.outline, machine.network, schedule, rule);
    for (std::int64_t step = rule.every; step <= 500; step += rule.every) {
      std::vector<std::int64_t> report = worked;
      for (std::int64_t& each : report)
        each = std::llround(static_cast<double>(each * rule.every) * share(random));
      EXPECT_FALSE(balance.hear(step, report)) << "seed " << seed << ", step " << step;
    }
  }
}

/// Blocks that no cut spreads evenly: the slowest stage is always far above the mean, and nobody is slow.
TEST(ABalance, TakesNoiseForNoiseWhereNoCutIsEven) {
  struct Uneven {
    int stages, layers;
    double mlp, head;
  };
  for (const auto& [stages, layers, mlp, head] : {Uneven{3, 8, 1.6, 0.3},
                                                  {4, 5, 1.6, 0.3},
                                                  {4, 9, 1.6, 0.3},
                                                  {4, 7, 1, 0.01},
                                                  {8, 7, 1.6, 1},
                                                  {8, 12, 1, 0.3}}) {
    std::vector<std::int64_t> costs{10'000};
    for (int layer = 0; layer < layers; ++layer)
      costs.insert(costs.end(), {1'000'000, std::llround(1e6 * mlp)});
    costs.push_back(std::llround(1e6 * head));
    Machine machine;
    machine.outline = equal_stages(1, 16, 1, {}, static_cast<int>(costs.size()));
    machine.outline.stages = stages;
    machine.outline.rank_of_chunk = looped_chunks(stages, 1);
    for (std::size_t block = 0; block < costs.size(); ++block) {
      machine.outline.blocks[block][0].forward = costs[block];
      machine.outline.blocks[block][0].backward = 2 * costs[block];
    }
    machine.outline.first_block = even_cuts(costs, stages, Slowness(static_cast<std::size_t>(stages), 1.0));
    const BalanceRule rule{.every = 5};
    const std::vector<std::int64_t> worked = machine.step(machine.outline.first_block, {}).expected.busy;
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> share(0.95, 1.05);
      Balance balance(machine.outline, machine.network, schedule, rule);
      for (std::int64_t step = rule.every; step <= 500; step += rule.every) {
        std::vector<std::int64_t> report = worked;
        for (std::int64_t& each : report)
          each = std::llround(static_cast<double>(each * rule.every) * share(random));
        EXPECT_FALSE(balance.hear(step, report))
            << layers << " layers on " << stages << " stages, seed " << seed << ", step " << step;
      }
    }
  }
}

TEST(ABalance, WaitsForASecondReport) {
  const Machine machine;
  const BalanceRule rule{.every = 5};
  Balance balance(machine.outline, machine.network, schedule, rule);
  std::mt19937 random(1);
  const auto report = [&](const Slowness& slower) {
    return machine.report(machine.outline.first_block, slower, rule.every, random, 0);
  };
  EXPECT_FALSE(balance.hear(5, report(half_speed_of(3))));
  EXPECT_FALSE(balance.hear(10, report(Slowness(8, 1.0))));
  EXPECT_FALSE(balance.hear(15, report(half_speed_of(3))));
  EXPECT_TRUE(balance.hear(20, report(half_speed_of(3))));
}

TEST(ABalance, LeavesACutThatNoneIsBetterThan) {
  Machine machine;
  machine.outline.blocks[0][0].forward *= 9;  // one block alone is dearer than a stage
  machine.outline.blocks[0][0].backward *= 9;
  machine.outline.first_block = {0, 1, 10, 19, 28, 37, 46, 55, 64};
  Balance balance(machine.outline, machine.network, schedule, {.every = 5});
  const std::vector<std::int64_t> once =
      machine.step(machine.outline.first_block, Slowness(8, 1.0)).expected.busy;
  std::vector<std::int64_t> report;
  for (const std::int64_t each : once) report.push_back(each * 5);
  report[0] = report[0] * 3 / 2;
  EXPECT_FALSE(balance.hear(5, report));
  EXPECT_FALSE(balance.hear(10, report));
}

TEST(ABalance, LeavesACutWhoseMovesDoNotPayBack) {
  Machine machine;
  machine.network.message.picoseconds_per_byte = 1e6;  // a block travels for 800 s
  for (BoundaryBytes& cut : machine.outline.cuts) cut.activation = cut.gradient = 1;
  const BalanceRule rule{.every = 5};
  Balance balance(machine.outline, machine.network, schedule, rule);
  std::mt19937 random(1);
  for (std::int64_t step = 5; step <= 20; step += 5)
    EXPECT_FALSE(balance.hear(
        step, machine.report(machine.outline.first_block, half_speed_of(3), rule.every, random, 0)));
}

TEST(ABalance, LeavesACutThatSavesLittle) {
  Outline outline = equal_stages(2, 16, 1, {.forward = 100'000'000, .backward = 200'000'000}, 100);
  Balance balance(outline, {}, schedule, {.every = 1, .percent = 0});
  outline.slower = {1.02, 1};  // of 100 blocks one might go
  const std::vector<std::int64_t> worked =
      plan_step(outline, order_of_step(outline, schedule, {}), {}).expected.busy;
  for (std::int64_t step = 1; step <= 4; ++step) EXPECT_FALSE(balance.hear(step, worked));
}

TEST(ABalance, IsDeafToStepsBeforeAMove) {
  const Machine machine;
  Balance balance(machine.outline, machine.network, schedule, {.every = 5});
  std::mt19937 random(1);
  const auto hear = [&](std::int64_t step, const std::vector<int>& cut, const Slowness& slower) {
    return balance.hear(step, machine.report(cut, slower, 5, random, 0));
  };
  const std::vector<int>& first = machine.outline.first_block;
  EXPECT_FALSE(hear(5, first, half_speed_of(3)));
  ASSERT_TRUE(hear(10, first, half_speed_of(3)));  // moves in steps 13 and 14
  const std::vector<int> moved = balance.cut();
  EXPECT_FALSE(hear(15, first, half_speed_of(3)));
  EXPECT_FALSE(hear(20, moved, half_speed_of(6))) << "one report since the move";
  EXPECT_TRUE(hear(25, moved, half_speed_of(6)));
}

TEST(ABalance, DecidesByTheWholeNumbersAlone) {
  const Machine machine;
  const auto decide = [&](std::int64_t more) {
    Balance balance(machine.outline, machine.network, schedule, {.every = 5});
    std::mt19937 random(1);
    std::vector<std::int64_t> report =
        machine.report(machine.outline.first_block, half_speed_of(3), 5, random, 0);
    report[3] += more;
    balance.hear(5, report);
    return balance.hear(10, report).value();
  };
  EXPECT_EQ(decide(0).digest(), decide(0).digest());
  EXPECT_NE(decide(0).digest(), decide(500'000'000).digest());
}

TEST(NearCuts, AreAsCheapAsEvenOnesAndNearer) {
  std::mt19937 random(1);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  for (int drawn = 0; drawn < 500; ++drawn) {
    const int stages = 2 + below(6), blocks = stages + below(40);
    std::vector<std::int64_t> cost;
    for (int block = 0; block < blocks; ++block) cost.push_back(100 + below(300));
    std::vector<double> slower;
    for (int stage = 0; stage < stages; ++stage) slower.push_back(1 + 0.25 * below(5));
    const std::vector<int> from = balanced_cuts(cost, stages), even = even_cuts(cost, stages, slower),
                           near = near_cuts(cost, from, slower);
    const auto costliest = [&](const std::vector<int>& cut) {
      std::int64_t most = 0;
      for (int stage = 0; stage < stages; ++stage) {
        const std::int64_t sum =
            std::accumulate(cost.begin() + cut[stage], cost.begin() + cut[stage + 1], std::int64_t{0});
        most = std::max<std::int64_t>(most, std::llround(static_cast<double>(sum) * slower[stage]));
      }
      return most;
    };
    const auto farthest = [&](const std::vector<int>& cut) {
      int most = 0;
      for (int stage = 0; stage < stages; ++stage) most = std::max(most, std::abs(cut[stage] - from[stage]));
      return most;
    };
    EXPECT_TRUE(std::is_sorted(near.begin(), near.end(), std::less_equal<>()));
    EXPECT_EQ(costliest(near), costliest(even));
    EXPECT_LE(farthest(near), farthest(even));
  }
}

TEST(TheWayToACut, TakesStepsThatFollowEachOther) {
  std::mt19937 random(1);
  const Outline outline = equal_stages(6, 4, 1, {}, 5);
  for (int drawn = 0; drawn < 500; ++drawn) {
    std::vector<int> inner(29);
    std::iota(inner.begin(), inner.end(), 1);
    std::shuffle(inner.begin(), inner.end(), random);
    std::vector<int> to(inner.begin(), inner.begin() + 5);
    to.push_back(0);
    to.push_back(30);
    std::sort(to.begin(), to.end());
    const int room = 1 + drawn % 3;
    Outline here = outline;
    for (const std::vector<int>& cut : cuts_between(outline, to, room))
      here = after_move(moving_step(here, cut, room));
    EXPECT_EQ(here.first_block, to);
  }
}

TEST(TheWayToACut, EndsBeforeABlockThatSharesATable) {
  Outline outline = equal_stages(3, 4, 1, {}, 4);
  tie(outline, {0, 5}, 40);
  EXPECT_EQ(cuts_between(outline, {0, 7, 10, 12}, 1),
            (std::vector<std::vector<int>>{{0, 5, 9, 12}, {0, 5, 10, 12}}));
  EXPECT_EQ(cuts_between(outline, {0, 2, 3, 12}, 4), (std::vector<std::vector<int>>{{0, 2, 6, 12}}));
}

}  // namespace
}  // namespace mindpipe
