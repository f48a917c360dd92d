#include "comm/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace mindpipe {
namespace {

using ::testing::HasSubstr;

/// The sentence and exit code of what `work` throws.
template <class Work>
std::pair<std::string, int> failure(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.what(), static_cast<int>(error.code)};
  }
  return {"nothing was thrown", 0};
}

TEST(Grid, RankAndCoordinateAreInversesWithTensorInnermost) {
  const Coord shape{2, 3, 4, 5};
  std::set<int> seen;
  for (int rank = 0; rank < num_ranks(shape); ++rank) {
    EXPECT_EQ(rank_at(shape, coord_at(shape, rank)), rank);
    seen.insert(rank_at(shape, coord_at(shape, rank)));
  }
  EXPECT_EQ(seen.size(), 120u);
  EXPECT_EQ(coord_at(shape, 1), (Coord{1, 0, 0, 0}));
  EXPECT_EQ(coord_at(shape, 2), (Coord{0, 1, 0, 0}));
  EXPECT_EQ(coord_at(shape, 6), (Coord{0, 0, 1, 0}));
  EXPECT_EQ(coord_at(shape, 24), (Coord{0, 0, 0, 1}));
}

TEST(Grid, OneAutoDegreeIsTheRestOfTheRanks) {
  EXPECT_EQ(resolve_grid({2, 0, 2, 1}, 12), (Coord{2, 3, 2, 1}));
  EXPECT_EQ(resolve_grid({0, 1, 1, 1}, 1), (Coord{1, 1, 1, 1}));
  EXPECT_EQ(resolve_grid({2, 2, 2, 1}, 8), (Coord{2, 2, 2, 1}));
}

TEST(Grid, DegreesThatDoNotFitAreRefusedWithTheNearestThatDo) {
  const auto [text, code] = failure([] { resolve_grid({2, 2, 2, 1}, 4); });
  EXPECT_EQ(code, 78);
  EXPECT_THAT(text, HasSubstr("grid: supernet 1 x pipeline 2 x data 2 x tensor 2 needs 8 ranks, but the job "
                              "has 4; start that many; grids "
                              "of 4 ranks that fit: "));
  EXPECT_THAT(text, HasSubstr("supernet 1 x pipeline 2 x data 2 x tensor 1"));
  EXPECT_THAT(text, HasSubstr("supernet 1 x pipeline 1 x data 2 x tensor 2"));

  const auto [rest, rest_code] = failure([] { resolve_grid({2, 0, 2, 1}, 6); });
  EXPECT_EQ(rest_code, 78);
  EXPECT_THAT(
      rest,
      HasSubstr(
          "grid.data is auto, but the other degrees multiply to 4 and the job has 6 ranks (not a multiple)"));

  EXPECT_THAT(failure([] { resolve_grid({0, 0, 1, 1}, 4); }).first, HasSubstr("2 degrees are auto"));
  EXPECT_THAT(failure([] { resolve_grid({-1, 1, 1, 1}, 1); }).first, HasSubstr("grid.tensor is -1"));
  EXPECT_EQ(failure([] { resolve_grid({1 << 20, 1 << 20, 1 << 20, 1}, 4); }).second, 78);
}

TEST(Grid, OnlyGridsThatFitAreOffered) {
  const auto fits = [](const Coord& shape) { return shape.supernet == 1 && shape.tensor == 1; };
  const auto text = failure([&] { resolve_grid({2, 2, 2, 1}, 4, fits); }).first;
  EXPECT_THAT(
      text,
      HasSubstr(
          "grids of 4 ranks that fit: supernet 1 x pipeline 2 x data 2 x tensor 1; supernet 1 x pipeline"));
  for (const Coord& shape : nearest_grids({2, 2, 2, 1}, 12, fits, 100))
    EXPECT_TRUE(fits(shape) && num_ranks(shape) == 12);
  EXPECT_EQ(nearest_grids({2, 2, 2, 1}, 12, fits, 100).size(), 6u) << "the divisors of 12";
  EXPECT_THAT(failure([] {
                resolve_grid({2, 2, 2, 1}, 4, [](const Coord&) { return false; });
              }).first,
              HasSubstr("fit: none"));
}

TEST(Grid, DegreesDivideTheLogicalShards) {
  for (int degree : {1, 2, 4, 8}) EXPECT_TRUE(can_share(8, degree));
  for (int degree : {0, 3, 6, 16, -2}) EXPECT_FALSE(can_share(8, degree)) << degree;
  for (int degree : {1, 2, 3, 6}) EXPECT_TRUE(can_share(6, degree));
  const auto [text, code] = failure([] { check_degree(Axis::data, 8, 3); });
  EXPECT_EQ(code, 78);
  EXPECT_THAT(text,
              HasSubstr("grid.data is 3, but the run's sums have 8 logical shards (reproducible.data)"));
  EXPECT_THAT(text, HasSubstr("use one of: 1, 2, 4, 8"));
}

}  // namespace
}  // namespace mindpipe
