#include "plan/moves_on_paper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "program/sample_space.h"

namespace mindpipe {
namespace {

/// Two lanes of two stages, where each unit has a million bytes and each pass a sum of a hundred thousand.
Outline outline_with_sums() {
  Outline outline = sample_lanes(2, 2, 3, 4, 0.5);
  for (UnitCost& unit : outline.units) {
    unit.move = -1;
    unit.moved = 1'000'000;
  }
  for (std::vector<BlockCost>& candidates : outline.blocks)
    for (BlockCost& cost : candidates) cost.forward_sums = cost.backward_sums = {2, 100'000};
  return outline;
}

Network network_of(double ps_per_byte) {
  Network network = sample_network(4);
  network.message.picoseconds_per_byte = ps_per_byte;
  return network;
}

TEST(MoveRatio, IsOfTheWayToTheNextLane) {
  Outline outline = outline_with_sums();
  Network network = network_of(100);
  const double within = move_ratio(outline, network);
  EXPECT_GT(within, 0);
  for (const int stage : {0, 1}) network.between[{stage, stage + 2}] = {0, 300};
  EXPECT_DOUBLE_EQ(move_ratio(outline, network), 3 * within);
  outline.lanes = 1;
  outline.own_cuts = true;
  EXPECT_DOUBLE_EQ(move_ratio(outline, network), within);
  network.between[{0, 1}] = network.between[{1, 0}] = {0, 200};
  EXPECT_DOUBLE_EQ(move_ratio(outline, network), 2 * within);
}

TEST(MoveRatio, CountsSumsOfTensorRanksAsTimeOfTheirPasses) {
  const Outline outline = outline_with_sums();
  Network network = network_of(100);
  const double free = move_ratio(outline, network);
  // Each sum is to take as long as the mean pass: passes are twice as long then.
  double passes = 0, sums = 0;
  for (const std::vector<BlockCost>& candidates : outline.blocks)
    for (const BlockCost& cost : candidates) {
      passes += static_cast<double>(cost.passes()) / static_cast<double>(candidates.size());
      sums += 2 / static_cast<double>(candidates.size());
    }
  network.tensor.latency = std::llround(passes / sums / 2);
  EXPECT_NEAR(move_ratio(outline, network), free / 2, 1e-4 * free);
}

}  // namespace
}  // namespace mindpipe
