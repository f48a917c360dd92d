#include "state/weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"

using namespace mindpipe;

namespace {

/// Rank 1 of 2 with two of four logical shards: split both ways, joined of several parts, padded, and not
/// split.
void describe(Unit& unit) {
  const Initial drawn{.kind = Initial::Kind::normal, .deviation = 0.5};
  unit.add(
      {.parts = {{"q.weight", 8}, {"k.weight", 8}}, .columns = 5, .split = Split::out, .initial = drawn});
  unit.add({.parts = {{"output.weight", 6}}, .columns = 8, .split = Split::in, .initial = drawn});
  unit.add({.parts = {{"table.weight", 128, 28}}, .columns = 3, .split = Split::out, .initial = drawn});
  unit.add({.parts = {{"norm.weight", 7}}, .initial = {.kind = Initial::Kind::one}});
  unit.lay_out({4, 2, 2}, 4, 0, DType::f32);
}

TEST(InitialValues, InPiecesAreThoseOfTheWhole) {
  Unit unit("block");
  describe(unit);
  const std::int64_t count = unit.flat_count();
  std::vector<float> whole(count, -1);
  initial_values(unit, 7, 1, 0, count, whole.data());
  EXPECT_GT(std::count_if(whole.begin(), whole.end(), [](float x) { return x != 0; }), 150);
  for (const std::int64_t most : {1, 3, 64, 100}) {
    std::vector<float> pieces(count, -1);
    for (std::int64_t first = 0; first < count; first += most)
      initial_values(unit, 7, 2, first, std::min(most, count - first), &pieces[first]);
    EXPECT_EQ(pieces, whole) << "pieces of " << most;
  }
}

TEST(InitialValues, AreThoseOfTheElementsNumberInTheWholeTensor) {
  Unit unit("block");
  describe(unit);
  std::vector<float> flat(unit.flat_count());
  initial_values(unit, 7, 1, 0, unit.flat_count(), flat.data());
  const RandomStream stream{7, purpose_of("block.output.weight")};
  const PieceOfShard piece = piece_of(unit, 1, 0, 3);  // columns 6 and 7 of 8
  float expected[2];
  stream.normals(4 * 8 + 6, 2, 0.5f, expected);
  EXPECT_EQ(piece.columns, 2);
  EXPECT_EQ(flat[unit.flat_offset(1, 1) + piece.first + 4 * 2], expected[0]);
  EXPECT_EQ(flat[unit.flat_offset(1, 1) + piece.first + 4 * 2 + 1], expected[1]);
}

}  // namespace
