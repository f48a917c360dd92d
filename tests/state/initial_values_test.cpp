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

TEST(InitialValues, OfARowThatBeginsAsZerosAreZeroWhereverATensorIsCut) {
  for (int shards : {1, 2, 4})
    for (const std::int64_t most : {1, 5, 4096}) {
      Unit unit("table"), plain("table");
      Initial drawn{.kind = Initial::Kind::normal, .deviation = 0.5};
      plain.add({.pieces = {{"table.weight", 128, 28}}, .columns = 3, .split = Split::out, .initial = drawn});
      drawn.zero_row = 66;
      unit.add({.pieces = {{"table.weight", 128, 28}}, .columns = 3, .split = Split::out, .initial = drawn});
      std::int64_t zeros = 0, same = 0;
      for (int shard = 0; shard < shards; ++shard) {
        for (Unit* one : {&unit, &plain}) one->lay_out({shards, 1, shard}, 1, 0, DType::f32);
        const std::int64_t count = unit.flat_count();
        std::vector<float> flat(count), without(count);
        for (std::int64_t first = 0; first < count; first += most)
          initial_values(unit, 7, 1, {first, std::min(first + most, count)}, &flat[first]);
        initial_values(plain, 7, 1, {0, count}, without.data());
        for (std::int64_t i = 0; i < count; ++i) {
          same += flat[i] == without[i];
          if (flat[i] == without[i]) continue;
          ++zeros;
          EXPECT_EQ(flat[i], 0);
          EXPECT_EQ(i / 3 + shard * 128 / shards, 66);
        }
      }
      EXPECT_EQ(zeros, 3);
      EXPECT_GE(same, 97 * 3);
    }
}

}  // namespace
}  // namespace mindpipe
