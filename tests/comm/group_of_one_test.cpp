#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/communicator.h"
#include "comm/fault_points.h"
#include "comm/mpi.h"
#include "tree.h"

namespace mindpipe {
namespace {

static_assert(!is_left_out("tensor", "sum"), "programs have no switch that leaves a collective out");

struct GroupOfOne : ::testing::Test {
  Memory memory{Memory::Kind::host};
  PlainBackend backend{memory};
  ~GroupOfOne() override { EXPECT_FALSE(mpi_is_up()) << "a group of one calls no MPI"; }
};

TEST_F(GroupOfOne, ComputesAllShardsItself) {
  Communicator group(backend, 6);
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.logical(), 6);
  EXPECT_EQ(group.local_shards(), 6);
  EXPECT_EQ(group.first_shard(), 0);
}

TEST_F(GroupOfOne, SumFollowsTheTreeForEveryCountOfShards) {
  for (int logical = 1; logical <= 13; ++logical)
    for (DType dtype : {DType::f32, DType::bf16}) {
      Communicator group(backend, logical);
      const std::int64_t count = 33;
      Block shards({logical, count}, dtype), total({count}, dtype);
      for (const Tensor& to : {total.tensor, shards.tensor.at(0)}) {
        fill_leaves(shards.tensor, 0, logical);
        group.sum(shards.tensor, to);
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(value_of(to, i), tree_sum(dtype, 0, logical, i)) << logical << " shards";
      }
      EXPECT_EQ(group.scratch_bytes(), 0u);
    }
}

TEST_F(GroupOfOne, ScattersAndGathersToItself) {
  Communicator group(backend, 2);
  Block shards({2, 3, 4}, DType::f32), part({3, 4}, DType::f32), whole({3, 4}, DType::f32);
  fill_leaves(shards.tensor, 0, 2);
  group.sum_scatter(shards.tensor, part.tensor, 3);
  group.gather(part.tensor, whole.tensor, 3);
  group.broadcast(whole.tensor, 0);
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(value_of(whole.tensor, i), tree_sum(DType::f32, 0, 2, i));
}

TEST_F(GroupOfOne, MaximumAndScalarsGoOverItsShards) {
  Communicator group(backend, 3);
  Block shards({3, 4}, DType::f32);
  for (int i = 0; i < 12; ++i) set_value(shards.tensor, i, static_cast<float>(i % 5));
  group.maximum(shards.tensor, shards.tensor.at(0));
  EXPECT_EQ(value_of(shards.tensor, 0), 4);  // 0 4 3
  EXPECT_EQ(value_of(shards.tensor, 3), 3);  // 3 2 1
  std::vector<double> scalars = {1e16, 1, 1.0, 2, -1e16, 3};
  group.sum_over_shards(scalars);
  EXPECT_EQ(scalars[0], (1e16 + 1.0) + -1e16);
  EXPECT_EQ(scalars[1], 6);
}

TEST_F(GroupOfOne, ShapesThatDoNotMatchAreRefused) {
  Communicator group(backend, 2);
  Block shards({3, 4}, DType::f32), total({4}, DType::f32);
  EXPECT_THROW(group.sum(shards.tensor, total.tensor), Error);
}

}  // namespace
}  // namespace mindpipe
