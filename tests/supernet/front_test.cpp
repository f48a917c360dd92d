#include "supernet/front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "supernet/hypervolume.h"

namespace mindpipe {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Points of small whole numbers, many of them equal somewhere.
std::vector<Objectives> points_on_a_grid(int count, int dimensions, std::uint32_t size, std::uint32_t seed) {
  const RandomStream words{seed, purpose_of("points")};
  std::vector<Objectives> points;
  for (int i = 0; i < count; ++i) {
    points.emplace_back();
    for (int k = 0; k < dimensions; ++k)
      points.back().push_back(words.word(static_cast<std::uint64_t>(i * dimensions + k)) % size);
  }
  return points;
}

TEST(Front, DominationIsBetterSomewhereAndWorseNowhere) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_TRUE(dominates({1, 2}, {2, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
  EXPECT_FALSE(dominates({2, 3}, {1, 2}));
  EXPECT_FALSE(dominates({std::nan(""), 1}, {2, 2}));
}

TEST(Front, IsWhatNobodyDominatesAndTheRestIsDominatedByIt) {
  for (const int dimensions : {1, 2, 3, 4}) {
    const std::vector<Objectives> points = points_on_a_grid(200, dimensions, 12, 7);
    std::vector<std::size_t> by_hand;
    for (std::size_t at = 0; at < points.size(); ++at)
      if (std::none_of(points.begin(), points.end(), [&](const auto& p) { return dominates(p, points[at]); }))
        by_hand.push_back(at);
    EXPECT_EQ(front_of(points), by_hand) << dimensions;
    const std::vector<int> ranks = ranks_of(points);
    for (std::size_t at = 0; at < points.size(); ++at) {
      int above = -1;  // the last rank that dominates a point is the one before its own
      for (std::size_t other = 0; other < points.size(); ++other)
        if (dominates(points[other], points[at])) above = std::max(above, ranks[other]);
      ASSERT_EQ(ranks[at], above + 1);
    }
  }
}

TEST(Front, HasAllOfEqualPointsAndNoneThatIsNotFinite) {
  const std::vector<Objectives> points{{2, 1}, {1, 2}, {2, 1}, {infinite, 0}, {std::nan(""), 0}, {2, 2}};
  EXPECT_EQ(front_of(points), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(front_of({}).empty());
}

TEST(Crowding, IsTheDistanceOfNeighboursWithinARank) {
  // Three ranks: five points on a line, two behind them, one behind all.
  const std::vector<Objectives> points{{0, 8}, {1, 6}, {2, 5}, {6, 1}, {8, 0}, {7, 7}, {2, 9}, {9, 9}};
  const std::vector<int> ranks = ranks_of(points);
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 0, 0, 0, 1, 1, 2}));
  const std::vector<double> crowding = crowding_of(points, ranks);
  EXPECT_EQ(crowding[0], infinite);
  EXPECT_DOUBLE_EQ(crowding[1], 2.0 / 8 + 3.0 / 8);
  EXPECT_DOUBLE_EQ(crowding[2], 5.0 / 8 + 5.0 / 8);
  EXPECT_DOUBLE_EQ(crowding[3], 6.0 / 8 + 5.0 / 8);
  EXPECT_EQ(crowding[4], infinite);
  EXPECT_EQ(crowding[5], infinite);
  EXPECT_EQ(crowding[6], infinite);
  EXPECT_EQ(crowding[7], 0) << "alone in its rank it has no extent";
}

TEST(Hypervolume, CountsTheCellsThatPointsDominate) {
  for (const int dimensions : {1, 2, 3, 4})
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
      constexpr int size = 7;
      std::vector<Objectives> points = points_on_a_grid(9, dimensions, 10, seed);  // some lie outside
      int cells = 0, all = 1;
      for (int k = 0; k < dimensions; ++k) all *= size;
      for (int cell = 0; cell < all; ++cell) {
        Objectives corner;
        for (int k = 0, rest = cell; k < dimensions; ++k, rest /= size) corner.push_back(rest % size);
        cells += std::any_of(points.begin(), points.end(), [&](const Objectives& point) {
          return std::equal(point.begin(), point.end(), corner.begin(), std::less_equal<>());
        });
      }
      EXPECT_DOUBLE_EQ(hypervolume(points, Objectives(dimensions, size)), cells)
          << dimensions << ", " << seed;
    }
  EXPECT_EQ(hypervolume({}, {1, 1}), 0);
}

}  // namespace
}  // namespace mindpipe
