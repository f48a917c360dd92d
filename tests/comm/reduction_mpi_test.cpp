// ranks: 1 2 3 4 8
#include "comm/reduction.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "comm/mutation.h"
#include "tree.h"

namespace mindpipe {
namespace {

struct ReductionTest : ::testing::Test {
  Memory memory{Memory::Kind::host};
  PlainBackend backend{memory};
  Waiting waiting;
  TrafficLedger ledger;
  int ranks = 1, rank = 0;
  ReductionTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    waiting.set_crowded(ranks > 2);
  }
  Reductions reductions() { return {backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), Axis::data, &ledger}; }
  std::int64_t bytes_over_ranks(TrafficClass kind) const {
    std::int64_t bytes = ledger.of(Axis::data, kind).bytes;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return bytes;
  }
  void expect_sum(const Tensor& slab, std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; i += 1 + (last - first) / 499) ASSERT_EQ(value_of(slab, i), tree_sum(slab.dtype, 0, ranks, i)) << "element " << i;
  }
};

TEST_F(ReductionTest, SeveralInFlightFinishInOrderWithTheBitsOfTheTree) {
  Reductions reductions = this->reductions();
  const std::int64_t sizes[] = {1, 1001, 3'300'007, 5, 70'000};  // the third goes in parts
  std::vector<Block> slabs;
  for (std::int64_t size : sizes) {
    slabs.emplace_back(Shape{size}, DType::f32);
    for (std::int64_t i = 0; i < size; i += size > 100'000 ? 1 + size / 997 : 1) set_value(slabs.back().tensor, i, leaf(rank, i));
  }
  std::vector<Reductions::Request> requests;
  for (Block& slab : slabs) requests.push_back(reductions.sum(slab.tensor));
  std::size_t finished = 0;
  while (finished < requests.size()) {  // computation would stand here
    reductions.progress();
    while (finished < requests.size() && reductions.done(requests[finished])) ++finished;
    for (std::size_t later = finished; later < requests.size(); ++later) EXPECT_FALSE(reductions.done(requests[later]));
  }
  for (Block& slab : slabs) {
    const std::int64_t size = slab.tensor.count(), stride = size > 100'000 ? 1 + size / 997 : 1;
    for (std::int64_t i = 0; i < size; i += stride) ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i)) << size << " elements";
  }
}

TEST_F(ReductionTest, ScatterThenGatherWithBoundsOfAnyKindIsTheSum) {
  Reductions reductions = this->reductions();
  const std::int64_t count = 1003;
  std::vector<std::vector<std::int64_t>> cuts = {{}, std::vector<std::int64_t>(static_cast<std::size_t>(ranks + 1), count)};
  cuts[1][0] = 0;                                             // rank 0 owns all
  cuts.push_back(reductions.equal_bounds(count));
  for (int r = 1; r < ranks; ++r) cuts[2][r] = 16 * r;        // the last owns nearly all
  for (const auto& bounds : cuts)
    for (DType dtype : {DType::f32, DType::bf16}) {
      Block slab({count}, dtype);
      fill_leaves(slab.tensor, rank, 1);
      const auto own = bounds.empty() ? reductions.equal_bounds(count) : bounds;
      reductions.wait(reductions.sum_scatter(slab.tensor, bounds));
      expect_sum(slab.tensor, own[rank], own[rank + 1]);
      reductions.wait(reductions.gather(slab.tensor, bounds));
      expect_sum(slab.tensor, 0, count);
    }
}

TEST_F(ReductionTest, OneOwnerOfALargeSlabStaysWithinTheScratch) {
  Reductions reductions = this->reductions();
  const std::int64_t count = 1'500'000;
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(ranks + 1), count);
  bounds[0] = 0;
  Block slab({count}, DType::f32);
  for (std::int64_t i = 0; i < count; i += 4999) set_value(slab.tensor, i, leaf(rank, i));
  const std::size_t scratch = memory.allocated(MemoryClass::workspace);
  reductions.wait(reductions.sum_scatter(slab.tensor, bounds));
  EXPECT_EQ(memory.allocated(MemoryClass::workspace), scratch);
  for (std::int64_t i = 0; rank == 0 && i < count; i += 4999) ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i));
}

TEST_F(ReductionTest, TheVolumesAreThoseOfTheFormulas) {
  Reductions reductions = this->reductions();
  const std::int64_t parameters = 1'300'001, d = ranks;
  Block gradients({parameters}, DType::f32), values({parameters}, DType::bf16);
  reductions.wait(reductions.sum_scatter(gradients.tensor));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::gradients), (d - 1) * 4 * parameters);
  reductions.wait(reductions.gather(values.tensor));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::values), (d - 1) * 2 * parameters);
  ledger.clear();
  reductions.wait(reductions.sum(gradients.tensor));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::gradients), 2 * (d - 1) * 4 * parameters);
  EXPECT_EQ(ledger.of(Axis::data, TrafficClass::gradients).calls, d > 1 ? 1 : 0);
}

TEST_F(ReductionTest, ReductionsMoveWhileATensorSumWaits) {
  if (ranks < 2) GTEST_SKIP() << "a group of one waits for nobody";
  Reductions reductions = this->reductions();
  Communicator tensor(backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), ranks, Axis::tensor, &ledger);
  waiting.on_progress([&] { reductions.progress(); });
  backend.on_progress([&] { reductions.progress(); });
  const std::int64_t count = 400'000;
  Block slab({count}, DType::f32), activation({1001}, DType::f32);
  for (std::int64_t i = 0; i < count; i += 997) set_value(slab.tensor, i, leaf(rank, i));
  const auto request = reductions.sum(slab.tensor);
  for (int layer = 0; layer < 5; ++layer) {
    fill_leaves(activation.tensor, rank, 1);
    tensor.sum(activation.tensor, activation.tensor);
    expect_sum(activation.tensor, 0, 1001);
  }
  reductions.wait(request);
  for (std::int64_t i = 0; i < count; i += 997) ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i));
}

TEST_F(ReductionTest, AMutatedReductionIsNoticed) {
  if (ranks < 2) GTEST_SKIP() << "a group of one exchanges nothing";
  Reductions reductions = this->reductions();
  Block slab({64}, DType::f32);
  fill_leaves(slab.tensor, rank, 1);
  set_mutation("data.sum");
  reductions.wait(reductions.sum(slab.tensor));
  set_mutation("");
  EXPECT_NE(value_of(slab.tensor, 3), tree_sum(DType::f32, 0, ranks, 3));
  EXPECT_EQ(value_of(slab.tensor, 3), leaf(rank, 3));
}

TEST_F(ReductionTest, BoundsThatDoNotCutTheSlabAreRefused) {
  Reductions reductions = this->reductions();
  Block slab({64}, DType::f32);
  const std::vector<std::int64_t> bounds(static_cast<std::size_t>(ranks + 1), 63);
  EXPECT_THROW(reductions.sum_scatter(slab.tensor, bounds), Error);
}

}  // namespace
}  // namespace mindpipe
