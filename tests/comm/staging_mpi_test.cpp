// ranks: 2 4
#include "comm/staging.h"

#include <gtest/gtest.h>

#include "comm/channel.h"
#include "comm/group.h"
#include "comm/reduction.h"
#include "late_backend.h"
#include "tree.h"

namespace mindpipe {
namespace {

/// Ranks whose tensors lie where MPI cannot read them, on a device that is always late.
struct StagingTest : ::testing::Test {
  Memory memory{Memory::Kind::host}, pinned{Memory::Kind::host};
  int ranks = 1, rank = world_rank();
  LateBackend backend{std::make_unique<PlainBackend>(memory), rank};
  Staging staging{backend, pinned};
  Waiting waiting;
  StagingTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    waiting.set_crowded(ranks > 2);
    waiting.set_staging(&staging);
  }
  static int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  std::unique_ptr<Group> group() { return std::make_unique<Group>(MPI_COMM_WORLD, waiting); }
};

TEST_F(StagingTest, SumsHaveTheBitsOfTheTreeAlsoWhenTheyFollowEachOther) {
  Communicator group(backend, this->group(), 4, Axis::tensor),
      one_each(backend, this->group(), ranks, Axis::tensor);
  const std::int64_t row = 77, inner = row * ranks, outer = 3, count = outer * inner;
  for (DType dtype : {DType::f32, DType::bf16}) {
    Block shards({group.local_shards(), outer, inner}, dtype), total({outer, inner}, dtype),
        again({group.local_shards(), outer, inner}, dtype), part({outer, row}, dtype),
        whole({outer, inner}, dtype);
    fill_leaves(shards.tensor, group.first_shard(), group.local_shards());
    fill_leaves(again.tensor, group.first_shard(), group.local_shards());
    group.sum(shards.tensor, total.tensor);
    group.sum_scatter(again.tensor, part.tensor, outer);
    group.gather(part.tensor, whole.tensor, outer);
    one_each.sum(whole.tensor, whole.tensor);  // reads what the gather has only been told to write
    backend.synchronize();
    for (std::int64_t i = 0; i < count; ++i) {
      const float sum = tree_sum(dtype, 0, 4, i);
      ASSERT_EQ(value_of(total.tensor, i), sum);
      ASSERT_EQ(value_of(whole.tensor, i), static_cast<float>(ranks) * sum);  // powers of two: exact
    }
  }
}

TEST_F(StagingTest, MaximumAndBroadcastReachEveryRank) {
  Communicator group(backend, this->group(), ranks, Axis::tensor);
  Block block({5}, DType::f32), shard({1, 9}, DType::f32), largest({9}, DType::f32);
  for (int i = 0; i < 5; ++i) set_value(block.tensor, i, static_cast<float>(100 * rank + i));
  for (int i = 0; i < 9; ++i) set_value(shard.tensor, i, static_cast<float>((rank + i) % ranks));
  group.broadcast(block.tensor, ranks - 1);
  group.maximum(shard.tensor, largest.tensor);
  backend.synchronize();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(value_of(block.tensor, i), 100 * (ranks - 1) + i);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(value_of(largest.tensor, i), ranks - 1);
}

TEST_F(StagingTest, AChannelKeepsItsOrderAndItsBytes) {
  Channels channels(MPI_COMM_WORLD, waiting, nullptr, route_of(memory, waiting));
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  constexpr int messages = 4;
  constexpr std::int64_t count = 1'500'000;  // two parts each
  std::vector<Block> out, in;
  std::vector<Channels::Transfer> transfers;
  for (int m = 0; m < messages; ++m) {
    out.emplace_back(Shape{count}, DType::f32);
    in.emplace_back(Shape{count}, DType::f32);
    for (std::int64_t i = 0; i < count; i += 1009)
      set_value(out[m].tensor, i, static_cast<float>(rank * 1000 + m * 10) + static_cast<float>(i % 7));
  }
  for (int m = 0; m < messages; ++m) {
    transfers.push_back(channels.receive(before, 1, in[m].tensor));
    transfers.push_back(channels.send(next, 1, out[m].tensor));
  }
  for (auto transfer : transfers) channels.wait(transfer);
  for (int m = 0; m < messages; ++m)
    for (std::int64_t i = 0; i < count; i += 1009)
      ASSERT_EQ(value_of(in[m].tensor, i),
                static_cast<float>(before * 1000 + m * 10) + static_cast<float>(i % 7))
          << "message " << m;
}

TEST_F(StagingTest, ReductionsGoOnBehindAndUseTheirBlocksAgain) {
  Reductions reductions(backend, group(), Axis::data);
  std::size_t pinned_bytes = 0;
  for (int round = 0; round < 3; ++round) {
    Block slab({300'007}, DType::f32);
    std::vector<Tensor> pieces;
    for (int r = 0; r < ranks; ++r)
      pieces.push_back(
          slab.tensor.range(slab.tensor.count() * r / ranks,
                            slab.tensor.count() * (r + 1) / ranks - slab.tensor.count() * r / ranks));
    for (std::int64_t i = 0; i < slab.tensor.count(); i += 1013) set_value(slab.tensor, i, leaf(rank, i));
    reductions.wait(reductions.sum(pieces));
    backend.synchronize();
    for (std::int64_t i = 0; i < slab.tensor.count(); i += 1013)
      ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i));
    if (round == 0) pinned_bytes = pinned.allocated();
  }
  EXPECT_GT(pinned_bytes, 0u);
  EXPECT_LE(pinned.allocated(), 2 * pinned_bytes);
}

}  // namespace
}  // namespace mindpipe
