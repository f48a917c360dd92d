#include "state/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "state/shard_map_sample.h"

namespace mindpipe {
namespace {

TEST(InitialValues, AskedForAFewAtATimeAreThoseOfTheWhole) {
  Unit unit("block");
  describe(unit, 1);
  const std::int64_t count = unit.flat_count();
  std::vector<float> whole(count, -1);
  initial_values(unit, 7, 1, {0, count}, whole.data());
  EXPECT_GT(std::count_if(whole.begin(), whole.end(), [](float x) { return x != 0; }), 150);

  for (const std::int64_t most : {1, 3, 64, 100}) {
    std::vector<float> few_at_a_time(count, -1);
    for (std::int64_t first = 0; first < count; first += most)
      initial_values(unit, 7, 2, {first, std::min(first + most, count)}, &few_at_a_time[first]);
    EXPECT_EQ(few_at_a_time, whole) << most << " at a time";
  }
}

TEST(InitialValues, AreThoseOfTheElementsNumberInTheWholeTensor) {
  Unit unit("block");
  describe(unit, 1);
  std::vector<float> flat(unit.flat_count());
  initial_values(unit, 7, 1, {0, unit.flat_count()}, flat.data());

  const RandomStream stream{7, purpose_of("block.output.weight")};
  float expected[2];
  stream.normals(4 * 8 + 6, 2, 0.5f, expected);  // row 4, columns 6 and 7 of 8: those of the last shard
  const std::int64_t row = unit.flat_offset(1, 1) + 4 * 2;
  EXPECT_EQ(flat[row], expected[0]);
  EXPECT_EQ(flat[row + 1], expected[1]);
}

}  // namespace
}  // namespace mindpipe
