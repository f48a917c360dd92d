#include "layers/unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/embedding.h"

namespace mindpipe {
namespace {

using ::testing::HasSubstr;

struct UnitTest : ::testing::Test {
  Memory memory{Memory::Kind::host};

  /// q | k | v of 8 rows each cut by rows, a weight cut by columns, a bias of form `rows`.
  static void describe(Unit& unit) {
    unit.add({.pieces = {{"q.weight", 8}, {"k.weight", 8}, {"v.weight", 8}},
              .columns = 5,
              .split = Split::out,
              .initial = {}});
    unit.add({.pieces = {{"output.weight", 6}}, .columns = 8, .split = Split::in, .initial = {}});
    unit.add({.pieces = {{"output.bias", 6}}, .form = Form::rows, .initial = {}});
  }
};

std::int64_t distance(const Tensor& from, const Tensor& to) {
  return (to.as<std::byte>() - from.as<std::byte>()) / static_cast<std::int64_t>(bytes_of(from.dtype));
}

TEST_F(UnitTest, CutsEveryParameterAsItsSplitSays) {
  Unit unit("unit");
  describe(unit);
  unit.lay_out({4, 4, 0}, 4, 0, DType::f32);
  EXPECT_EQ(unit.shard_shape(0), (Shape{6, 5})) << "two rows each of q, k and v";
  EXPECT_EQ(unit.shard_shape(1), (Shape{6, 2}));
  EXPECT_EQ(unit.shard_shape(2), (Shape{6}));
  EXPECT_EQ(unit.local_shards(0), 4);
  EXPECT_EQ(unit.local_shards(2), 1);
  EXPECT_EQ(unit.parameters(), 24 * 5 + 6 * 8 + 6);
}

TEST_F(UnitTest, LaysShardsOutOneAfterTheOtherWithoutOverlap) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Unit unit("unit");
    describe(unit);
    unit.lay_out({4, 2, 2}, 4, 0, dtype);
    unit.allocate_values(memory);
    const Tensor first = unit.value(0, 0);
    std::int64_t end = 0;
    for (int param = 0; param < 3; ++param)
      for (int s = 0; s < unit.local_shards(param); ++s) {
        const Tensor t = unit.value(param, s);
        EXPECT_EQ(t.dtype, dtype);
        EXPECT_EQ(distance(first, t), unit.flat_offset(param, s));
        EXPECT_GE(unit.flat_offset(param, s), end);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 64, 0u);
        end = unit.flat_offset(param, s) + t.count();
      }
    EXPECT_LE(end, unit.flat_count());
  }
}

TEST_F(UnitTest, HoldsASharePerRankOfTheSameShape) {
  Unit whole("unit"), part("unit");
  for (Unit* unit : {&whole, &part}) describe(*unit);
  whole.lay_out({4, 4, 0}, 4, 0, DType::f32);
  part.lay_out({4, 1, 3}, 4, 0, DType::f32);
  for (int param = 0; param < 3; ++param) EXPECT_EQ(whole.shard_shape(param), part.shard_shape(param));
  EXPECT_LT(part.flat_count(), whole.flat_count());
  EXPECT_EQ(part.local_shards(0), 1);
}

TEST_F(UnitTest, KeepsAnAccumulatorForEachPartOfTheSequenceOfARowsParameter) {
  Unit unit("unit");
  describe(unit);
  unit.lay_out({4, 4, 0}, 4, 0, DType::bf16);
  unit.gradients().allocate(memory);
  EXPECT_TRUE(unit.gradients().has_sequence_parts(2));
  EXPECT_FALSE(unit.gradients().has_sequence_parts(0));
  const Tensor bias = unit.gradients().of(2, 0, 0);
  EXPECT_EQ(bias.shape, (Shape{4, 6}));
  EXPECT_EQ(bias.dtype, DType::f32) << "gradients are f32 for bf16 values";
  EXPECT_EQ(bias.data, unit.gradients().sequence_parts(2, 0).data);
  EXPECT_GE(distance(unit.gradients().root(0), bias), unit.flat_count())
      << "behind the root that the parts are summed to";
  EXPECT_LE(distance(unit.gradients().root(0), bias) + bias.count(),
            unit.gradients().accumulators(0).count());
  unit.lay_out({1, 1, 0}, 1, 0, DType::f32);
  unit.gradients().allocate(memory);
  EXPECT_FALSE(unit.gradients().has_sequence_parts(2));
  EXPECT_EQ(unit.gradients().of(2, 0, 0).shape, (Shape{1, 6})) << "the root itself is the only part";
}

TEST_F(UnitTest, FindsATiedTableAgainAndKeepsItsUsesApart) {
  Unit unit("embedding");
  const ParamSpec spec{
      .pieces = {{"embedding.weight", 128, 28}}, .columns = 4, .split = Split::out, .initial = {}, .uses = 3};
  const Param first = unit.add(spec, 0), second = unit.add(spec, 1), third = unit.add(spec, 2);
  EXPECT_EQ(unit.params().size(), 1u);
  unit.lay_out({2, 2, 0}, 2, 2, DType::f32);
  unit.allocate_values(memory);
  unit.gradients().allocate(memory);
  EXPECT_EQ(first.value(1).data, third.value(1).data);
  EXPECT_EQ(unit.uses(), 3);
  EXPECT_EQ(distance(first.gradient(), second.gradient()), unit.flat_count() * 3)
      << "each use has levels of its own behind it";
  EXPECT_EQ(distance(second.gradient(1), third.gradient(1)), unit.flat_count() * 3);
  EXPECT_EQ(unit.parameters(), 100 * 4) << "a shared table counts once, its padding not at all";
}

TEST_F(UnitTest, KeepsPartialSumsOfDataShardsBesideTheAccumulators) {
  Unit unit("unit");
  describe(unit);
  unit.lay_out({2, 2, 0}, 2, 0, DType::f32);
  const std::size_t without = unit.gradients().bytes();
  unit.lay_out({2, 2, 0}, 2, 3, DType::f32);
  EXPECT_EQ(unit.gradients().levels(), 3);
  EXPECT_GE(unit.gradients().bytes(),
            without + 3 * static_cast<std::size_t>(unit.flat_count()) * sizeof(float));
  unit.gradients().allocate(memory);
  const Tensor accumulators = unit.gradients().accumulators(0);
  for (int level = 0; level < 3; ++level) {
    EXPECT_EQ(unit.gradients().level(level, 0).count(), unit.flat_count());
    EXPECT_GE(distance(accumulators, unit.gradients().level(level, 0)), accumulators.count())
        << "zeroing the accumulators leaves the levels alone";
  }
  EXPECT_EQ(distance(unit.gradients().level(0, 0), unit.gradients().level(1, 0)), unit.flat_count());
}

TEST_F(UnitTest, CountsTheMemoryThatItTakes) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Memory counted(Memory::Kind::counted);
    Unit unit("unit");
    describe(unit);
    unit.lay_out({4, 4, 0}, 4, 2, dtype);
    unit.allocate_values(counted);
    unit.gradients().allocate(counted);
    EXPECT_EQ(counted.allocated(MemoryClass::values), value_bytes(unit));
    EXPECT_EQ(counted.allocated(MemoryClass::gradients), unit.gradients().bytes());
  }
}

TEST_F(UnitTest, RefusesShardsThatDoNotDivideAParameter) {
  Unit unit("unit");
  describe(unit);
  try {
    unit.lay_out({3, 3, 0}, 3, 0, DType::f32);
    FAIL() << "three shards of eight rows";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    EXPECT_THAT(error.what(),
                HasSubstr("unit: q.weight has 8 rows, which 3 logical tensor shards do not divide"));
  }
}

TEST_F(UnitTest, FindsAUseOfMemoryThatIsNotThere) {
  Unit unit("unit");
  describe(unit);
  unit.lay_out({2, 2, 0}, 2, 0, DType::f32);
  EXPECT_THROW(unit.value(0, 0), Error);
  EXPECT_THROW(unit.gradients().of(0, 0, 0), Error);
  unit.allocate_values(memory);
  EXPECT_NO_THROW(unit.value(0, 1));
  EXPECT_THROW(unit.value(0, 2), Error);
  EXPECT_THROW(unit.value(2, 1), Error) << "an undivided parameter has one shard";
}

}  // namespace
}  // namespace mindpipe
