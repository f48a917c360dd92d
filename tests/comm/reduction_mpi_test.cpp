// ranks: 1 2 3 4 8
#include "comm/reduction.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "comm/fault_points.h"
#include "core/bulk_parts.h"
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
  Reductions reductions(int shards = 0, std::int64_t part_bytes = most_part_bytes) {
    return {backend,   std::make_unique<Group>(MPI_COMM_WORLD, waiting), Axis::data, &ledger, shards,
            part_bytes};
  }
  std::vector<std::int64_t> equal_bounds(std::int64_t count) const {
    std::vector<std::int64_t> bounds;
    for (int r = 0; r <= ranks; ++r) bounds.push_back(count * r / ranks);
    return bounds;
  }
  /// Part number `part` of a slab that is cut into `parts`: an equal share of the elements [bounds[r],
  /// bounds[r + 1]) of every rank r.
  static std::vector<Tensor> pieces(const Tensor& slab, const std::vector<std::int64_t>& bounds, int part = 0,
                                    int parts = 1) {
    std::vector<Tensor> all;
    for (std::size_t r = 0; r + 1 < bounds.size(); ++r) {
      const std::int64_t count = bounds[r + 1] - bounds[r], first = count * part / parts,
                         last = count * (part + 1) / parts;
      all.push_back(slab.range(bounds[r] + first, last - first));
    }
    return all;
  }
  std::vector<Tensor> pieces(const Tensor& slab) const { return pieces(slab, equal_bounds(slab.count())); }
  /// Begins the sum of a slab in as many parts as its size asks for; returns the last one's request.
  Reductions::Request sum(Reductions& reductions, const Tensor& slab) const {
    const int parts = parts_of(static_cast<std::int64_t>(slab.bytes()), ranks, most_part_bytes);
    Reductions::Request last = -1;
    for (int part = 0; part < parts; ++part)
      last = reductions.sum(pieces(slab, equal_bounds(slab.count()), part, parts));
    return last;
  }
  std::int64_t bytes_over_ranks(TrafficClass kind) const {
    std::int64_t bytes = ledger.of(Axis::data, kind).bytes;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return bytes;
  }
  void expect_sum(const Tensor& slab, std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; i += 1 + (last - first) / 499)
      ASSERT_EQ(value_of(slab, i), tree_sum(slab.dtype, 0, ranks, i)) << "element " << i;
  }
};

TEST_F(ReductionTest, SeveralInFlightFinishInOrderWithTheBitsOfTheTree) {
  Reductions reductions = this->reductions();
  const std::int64_t sizes[] = {1, 1001, 3'300'007, 5, 70'000};  // the third goes in parts
  std::vector<Block> slabs;
  for (std::int64_t size : sizes) {
    slabs.emplace_back(Shape{size}, DType::f32);
    for (std::int64_t i = 0; i<size; i += size> 100'000 ? 1 + size / 997 : 1)
      set_value(slabs.back().tensor, i, leaf(rank, i));
  }
  std::vector<Reductions::Request> requests;
  for (Block& slab : slabs) requests.push_back(sum(reductions, slab.tensor));
  std::size_t finished = 0;
  while (finished < requests.size()) {  // computation would stand here
    reductions.progress();
    while (finished < requests.size() && reductions.done(requests[finished])) ++finished;
    for (std::size_t later = finished; later < requests.size(); ++later)
      EXPECT_FALSE(reductions.done(requests[later]));
  }
  for (Block& slab : slabs) {
    const std::int64_t size = slab.tensor.count(), stride = size > 100'000 ? 1 + size / 997 : 1;
    for (std::int64_t i = 0; i < size; i += stride)
      ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i)) << size << " elements";
  }
}

TEST_F(ReductionTest, ScatterThenGatherWithBoundsOfAnyKindIsTheSum) {
  Reductions reductions = this->reductions();
  const std::int64_t count = 1003;
  std::vector<std::vector<std::int64_t>> cuts = {
      {}, std::vector<std::int64_t>(static_cast<std::size_t>(ranks + 1), count)};
  cuts[1][0] = 0;  // rank 0 owns all
  cuts[0] = equal_bounds(count);
  cuts.push_back(equal_bounds(count));
  for (int r = 1; r < ranks; ++r) cuts[2][r] = 16 * r;  // the last owns nearly all
  for (const auto& bounds : cuts)
    for (DType dtype : {DType::f32, DType::bf16}) {
      Block slab({count}, dtype);
      fill_leaves(slab.tensor, rank, 1);
      reductions.wait(reductions.sum_scatter(pieces(slab.tensor, bounds)));
      expect_sum(slab.tensor, bounds[rank], bounds[rank + 1]);
      reductions.wait(reductions.gather(pieces(slab.tensor, bounds)));
      expect_sum(slab.tensor, 0, count);
    }
}

TEST_F(ReductionTest, SeveralRootsOfARankHaveTheBitsOfTheTree) {
  for (int each : {3, 5, 6, 7}) {
    const int shards = each * ranks;
    const std::int64_t count = 1003;
    Reductions reductions = this->reductions(shards);
    const SumTree tree(shards, ranks, rank);
    const auto bounds = equal_bounds(count);
    const auto brought = [&] {  // what the rank's own shards add up to
      std::vector<Block> roots;
      for (const Subtree& root : tree.roots()) {
        roots.emplace_back(Shape{count}, DType::f32);
        for (std::int64_t i = 0; i < count; ++i)
          set_value(roots.back().tensor, i, tree_sum(DType::f32, root.first, root.last - root.first, i));
      }
      return roots;
    };
    const auto earlier = [&](const std::vector<Block>& roots) {
      std::vector<Reductions::Pieces> all;
      for (std::size_t i = 0; i + 1 < roots.size(); ++i) all.push_back(pieces(roots[i].tensor, bounds));
      return all;
    };
    const std::vector<Block> summed = brought(), scattered = brought();
    const Tensor all = summed.back().tensor, own = scattered.back().tensor;
    reductions.wait(reductions.sum(pieces(all, bounds), earlier(summed)));
    reductions.wait(reductions.sum_scatter(pieces(own, bounds), {}, earlier(scattered)));
    for (std::int64_t i = 0; i < count; ++i) {
      const float wanted = tree_sum(DType::f32, 0, shards, i);
      ASSERT_EQ(value_of(all, i), wanted) << shards << " shards";
      if (i >= bounds[rank] && i < bounds[rank + 1]) {
        ASSERT_EQ(value_of(own, i), wanted) << shards << " shards, scattered";
      }
    }
  }
}

TEST_F(ReductionTest, OneOwnerOfALargeSlabStaysWithinTheScratch) {
  Reductions reductions = this->reductions();
  const std::int64_t count = 1'500'000;
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(ranks + 1), count);
  bounds[0] = 0;
  Block slab({count}, DType::f32);
  for (std::int64_t i = 0; i < count; i += 4999) set_value(slab.tensor, i, leaf(rank, i));
  reductions.reserve(Exchange::scratch_bytes(
      SumTree(ranks, ranks), static_cast<std::size_t>(longest_part(ranks, most_part_bytes) / ranks)));
  const Memory::Closed closed(memory);
  const int parts =
      parts_of(count * 4 * ranks, ranks, most_part_bytes);  // its piece is the whole, on every rank
  for (int part = 0; part < parts; ++part)
    reductions.wait(reductions.sum_scatter(pieces(slab.tensor, bounds, part, parts)));
  for (std::int64_t i = 0; rank == 0 && i < count; i += 4999)
    ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i));
}

TEST_F(ReductionTest, TheVolumesAreThoseOfTheFormulas) {
  Reductions reductions = this->reductions();
  const std::int64_t parameters = 1'300'001, d = ranks;
  Block gradients({parameters}, DType::f32), values({parameters}, DType::bf16);
  const auto bounds = equal_bounds(parameters);
  for (int part : {0, 1}) reductions.wait(reductions.sum_scatter(pieces(gradients.tensor, bounds, part, 2)));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::gradients), (d - 1) * 4 * parameters);
  reductions.wait(reductions.gather(pieces(values.tensor)));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::values), (d - 1) * 2 * parameters);
  ledger.clear();
  for (int part : {0, 1}) reductions.wait(reductions.sum(pieces(gradients.tensor, bounds, part, 2)));
  EXPECT_EQ(bytes_over_ranks(TrafficClass::gradients), 2 * (d - 1) * 4 * parameters);
  EXPECT_EQ(ledger.of(Axis::data, TrafficClass::gradients).calls, d > 1 ? 2 : 0) << "a call for each part";
}

TEST_F(ReductionTest, ReductionsMoveWhileATensorSumWaits) {
  if (ranks < 2) GTEST_SKIP() << "a group of one waits for nobody";
  Reductions reductions = this->reductions();
  Communicator tensor(backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), ranks, Axis::tensor,
                      &ledger);
  waiting.on_progress([&] { reductions.progress(); });
  backend.on_progress([&] { reductions.progress(); });
  const std::int64_t count = 400'000;
  Block slab({count}, DType::f32), activation({1001}, DType::f32);
  for (std::int64_t i = 0; i < count; i += 997) set_value(slab.tensor, i, leaf(rank, i));
  const auto request = sum(reductions, slab.tensor);
  for (int layer = 0; layer < 5; ++layer) {
    fill_leaves(activation.tensor, rank, 1);
    tensor.sum(activation.tensor, activation.tensor);
    expect_sum(activation.tensor, 0, 1001);
  }
  reductions.wait(request);
  for (std::int64_t i = 0; i < count; i += 997)
    ASSERT_EQ(value_of(slab.tensor, i), tree_sum(DType::f32, 0, ranks, i));
}

TEST_F(ReductionTest, AMutatedReductionIsNoticed) {
  if (ranks < 2) GTEST_SKIP() << "a group of one exchanges nothing";
  Reductions reductions = this->reductions();
  Block slab({64}, DType::f32);
  fill_leaves(slab.tensor, rank, 1);
  set_mutation("data.sum");
  reductions.wait(reductions.sum(pieces(slab.tensor)));
  set_mutation("");
  EXPECT_NE(value_of(slab.tensor, 3), tree_sum(DType::f32, 0, ranks, 3));
  EXPECT_EQ(value_of(slab.tensor, 3), leaf(rank, 3));
}

TEST_F(ReductionTest, TheOwnPieceOfAScatteredSumMayGoElsewhere) {
  if (ranks < 2) GTEST_SKIP() << "a group of one exchanges nothing";
  Reductions reductions = this->reductions();
  const auto bounds = equal_bounds(1003);
  Block slab({1003}, DType::f32), elsewhere({bounds[rank + 1] - bounds[rank]}, DType::f32);
  fill_leaves(slab.tensor, rank, 1);
  reductions.wait(reductions.sum_scatter(pieces(slab.tensor, bounds), elsewhere.tensor));
  for (std::int64_t i = bounds[rank]; i < bounds[rank + 1]; ++i)
    ASSERT_EQ(value_of(elsewhere.tensor, i - bounds[rank]), tree_sum(DType::f32, 0, ranks, i));
}

TEST_F(ReductionTest, NoSecondHalfBeginsWhileAHigherClassWaits) {
  if (ranks == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  Reductions reductions = this->reductions();
  Block slab({1003}, DType::f32);
  fill_leaves(slab.tensor, rank, 1);
  TrafficGate& gate = waiting.gate();
  int is_shut = 0;  // when rank 0 looks: a machine that leaves it no processor may take longer than the gate
                    // has patience
  for (int attempt = 0; attempt < 20 && is_shut == 0; ++attempt) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t begin = now_ns();
    if (rank == 0) gate.begin(TrafficClass::pipeline);
    const Reductions::Request sum = reductions.sum(pieces(slab.tensor, equal_bounds(1003)));
    while (now_ns() - begin < 2'000'000) reductions.progress();
    const bool is_done = reductions.done(sum);
    is_shut = gate.open_for(TrafficClass::gradients) ? 0 : 1;
    EXPECT_FALSE(is_shut == 1 && is_done) << "it has sent the sum beside a message";
    if (rank == 0) gate.end(TrafficClass::pipeline);
    reductions.wait(sum);
    MPI_Bcast(&is_shut, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  EXPECT_EQ(is_shut, 1) << "rank 0 was always late";
}

TEST_F(ReductionTest, NoPartBeginsWhileAHigherClassWaitsOrNothingHasRoom) {
  Reductions reductions = this->reductions();
  TrafficGate& gate = waiting.gate();
  EXPECT_TRUE(reductions.may_begin(TrafficClass::gradients));
  gate.begin(TrafficClass::pipeline);
  EXPECT_EQ(reductions.may_begin(TrafficClass::gradients), ranks == 1);
  gate.end(TrafficClass::pipeline);
  EXPECT_TRUE(reductions.may_begin(TrafficClass::gradients));
  if (ranks == 1) return;
  gate.begin(TrafficClass::gradients);
  EXPECT_TRUE(reductions.may_begin(TrafficClass::values)) << "weights are wanted sooner than gradients";
  gate.end(TrafficClass::gradients);
  Block slab({3'000'000}, DType::f32);
  const auto bounds = equal_bounds(3'000'000);
  Reductions::Request last = -1;
  for (int part = 0; part < 3; ++part) last = reductions.sum(pieces(slab.tensor, bounds, part, 4));
  reductions.wait(last);
  EXPECT_TRUE(reductions.may_begin(TrafficClass::gradients));
}

TEST_F(ReductionTest, WhatHasNoRoomIsRefused) {
  if (ranks < 2) GTEST_SKIP() << "a group of one needs no room";
  Reductions reductions = this->reductions();
  Block slab({3'000'000}, DType::f32);
  std::vector<std::int64_t> bounds(static_cast<std::size_t>(ranks + 1), 3'000'000);
  bounds[0] = 0;
  if (rank == 0) {
    EXPECT_THROW(reductions.sum_scatter(pieces(slab.tensor, bounds)), Error);
  }
  EXPECT_THROW(reductions.sum({slab.tensor.range(0, 64)}), Error) << "a piece for each rank";
}

TEST(Parts, AreAsLongAsSaidWithTheOverhangOfEveryRank) {
  for (const std::int64_t part : {least_part_bytes, std::int64_t{1'250'000}, most_part_bytes}) {
    EXPECT_EQ(parts_of(0, 2, part), 1);
    EXPECT_EQ(parts_of(part, 0, part), 1);
    EXPECT_EQ(parts_of(part + 1, 0, part), 2);
    EXPECT_EQ(parts_of(part, 2, part), 2) << "cut at edges of chunks, one part might be longer";
    for (int ranks : {2, 3, 8, 32}) {
      const std::int64_t chunks = ranks * longest_overhang;
      EXPECT_LE(longest_part(ranks, part), 2 * chunks <= part ? part : std::min(part, chunks) + chunks);
      for (std::int64_t bytes : {1000, 5'000'000, 154'389'504})
        EXPECT_LE(bytes / parts_of(bytes, ranks, part) + ranks * longest_overhang, longest_part(ranks, part))
            << ranks;
    }
  }
}

TEST(Parts, AreWhatALinkCarriesInAQuarterOfAMillisecond) {
  EXPECT_EQ(part_bytes_of(0, 2), 4 << 20) << "a free link";
  EXPECT_EQ(part_bytes_of(1e12 / 350e9, 2), 4 << 20);
  EXPECT_EQ(part_bytes_of(1e12 / 4e9, 2), 1'000'000);
  EXPECT_EQ(part_bytes_of(1e12 / 1e8, 2), 256 << 10);
  EXPECT_EQ(part_bytes_of(1e12 / 1e8, 16), 1 << 20) << "a chunk of 64 KiB for each of its ranks";
  EXPECT_EQ(part_bytes_of(1e12 / 1e8, 128), 8 << 20);
}

}  // namespace
}  // namespace mindpipe
