#include "state/shard_map.h"

#include <gtest/gtest.h>

#include <map>

#include "config/kinds.h"
#include "state/shard_map_sample.h"

namespace mindpipe {
namespace {

/// The sample's pieces as whole tensors: stacked, where several stand in one parameter; the first and the
/// second as files that have matrices the other way round.
std::vector<WholeTensor> tensors_of_sample() {
  return {{"qk", {{0, 0, 0, 0}, {0, 0, 1, 8}}, 16, 5, true},
          {"output", {{0, 1, 0, 0}}, 6, 8, true},
          {"output as it is", {{0, 1, 0, 0}}, 6, 8, false},
          {"table", {{0, 2, 0, 0}}, 100, 3, false},
          {"k before q", {{0, 0, 1, 0}, {0, 0, 0, 8}}, 16, 5, false},
          {"biases", {{0, 3, 0, 0}, {0, 3, 1, 8}}, 17, 0, false},
          {"norm", {{0, 4, 0, 0}}, 7, 0, false}};
}

/// An element of a tensor as it is stored, and where a rank has it in the flat order.
using Places = std::map<std::int64_t, std::int64_t>;

/// Adds the elements of a run to `places`; none may be there.
void add_run(Places& places, const WholeTensor& tensor, const ElementRun& run) {
  for (std::int64_t i = 0; i < run.count; ++i) {
    const std::int64_t at = stored_at(tensor, run.row, run.column) + i * stored_step(tensor);
    EXPECT_TRUE(places.emplace(at, run.flat + i).second) << tensor.name << " has element " << at << " twice";
  }
}

Places places_of(const Unit& unit, const WholeTensor& tensor) {
  Places places;
  for (const StackedPiece& piece : tensor.pieces)
    for (const ElementRun& run : runs_of(unit, piece, {0, unit.flat_count()})) add_run(places, tensor, run);
  return places;
}

struct ShardMap : ::testing::Test {
  Unit unit{"block"};
  ShardMap() { describe(unit, 1); }
};

TEST_F(ShardMap, SaysWhereElementsOfSplitParametersLie) {
  const std::vector<WholeTensor> tensors = tensors_of_sample();
  const auto flat_of = [&](int tensor, std::int64_t row, std::int64_t column) {
    return places_of(unit, tensors[tensor]).at(stored_at(tensors[tensor], row, column));
  };
  // A shard of q and k stacked has two rows of each.
  EXPECT_EQ(flat_of(0, 5, 3), unit.flat_offset(0, 0) + 5 + 3);
  EXPECT_EQ(flat_of(0, 8 + 6, 1), unit.flat_offset(0, 1) + 2 * 5 + 1);
  EXPECT_EQ(flat_of(1, 4, 7), unit.flat_offset(1, 1) + 4 * 2 + 1);
  EXPECT_EQ(flat_of(4, 6, 1), unit.flat_offset(0, 1) + 2 * 5 + 1);
  EXPECT_EQ(flat_of(5, 8 + 8, 0), unit.flat_offset(3, 0) + 2 + 2);
  EXPECT_EQ(stored_at(tensors[1], 4, 7), 7 * 6 + 4);
  EXPECT_EQ(stored_at(tensors[2], 4, 7), 4 * 8 + 7);
}

TEST_F(ShardMap, AllRanksTogetherHaveEveryElementOnceAndNoPadding) {
  Unit other("block");
  describe(other, 0);
  for (const WholeTensor& tensor : tensors_of_sample()) {
    Places all = places_of(unit, tensor);
    const std::size_t here = all.size();
    const Places there = places_of(other, tensor);
    all.insert(there.begin(), there.end());
    if (tensor.name == "norm") {
      EXPECT_EQ(here, there.size());
    } else {
      EXPECT_EQ(all.size(), here + there.size()) << tensor.name;
    }
    ASSERT_EQ(all.size(), static_cast<std::size_t>(tensor.count())) << tensor.name;
    EXPECT_EQ(all.begin()->first, 0) << tensor.name;
    EXPECT_EQ(all.rbegin()->first, tensor.count() - 1) << tensor.name;
  }
}

TEST_F(ShardMap, AFewElementsAtATimeAreTheSameOnes) {
  for (const WholeTensor& tensor : tensors_of_sample())
    for (const std::int64_t most : {1, 7, 50, 1000}) {
      Places by_flat, by_stored;
      for (const StackedPiece& piece : tensor.pieces) {
        for (std::int64_t first = 0; first < unit.flat_count(); first += most)
          for (const ElementRun& run : runs_of(unit, piece, {first, first + most})) {
            EXPECT_GE(run.flat, first);
            EXPECT_LE(run.flat + run.count, first + most);
            add_run(by_flat, tensor, run);
          }
        for (std::int64_t first = 0; first < tensor.count(); first += most)
          for (const ElementRun& run : stored_runs_of(unit, piece, tensor, {first, first + most})) {
            const std::int64_t at = stored_at(tensor, run.row, run.column);
            EXPECT_GE(at, first);
            EXPECT_LT(at + (run.count - 1) * stored_step(tensor), first + most);
            add_run(by_stored, tensor, run);
          }
      }
      EXPECT_EQ(by_flat, places_of(unit, tensor)) << tensor.name << ", " << most << " at a time";
      EXPECT_EQ(by_stored, places_of(unit, tensor)) << tensor.name << ", " << most << " at a time";
    }
}

}  // namespace
}  // namespace mindpipe
