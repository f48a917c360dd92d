// ranks: 1 2 3 4 8
#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/fault_points.h"
#include "comm/group.h"
#include "comm/ledger.h"
#include "tree.h"

namespace mindpipe {
namespace {

constexpr std::int64_t odd_sizes[] = {1, 2, 7, 64, 1001, 20011};

/// Fixture of one rank of a tensor group.
struct CommunicatorTest : ::testing::Test {
  Memory memory{Memory::Kind::host};
  PlainBackend backend{memory};
  Waiting waiting;
  TrafficLedger ledger;
  int ranks = 1;

  CommunicatorTest() {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    waiting.set_crowded(ranks > 2);
  }
  Communicator communicator(int logical) {
    return {backend, std::make_unique<Group>(MPI_COMM_WORLD, waiting), logical, Axis::tensor, &ledger};
  }
  /// Logical shard counts that these ranks can share, in whole subtrees or not.
  std::vector<int> logical_counts() const {
    std::vector<int> counts;
    for (int logical : {1, 2, 3, 4, 6, 8, 9, 10, 12, 24})
      if (can_share(logical, ranks)) counts.push_back(logical);
    return counts;
  }
  std::int64_t sum_over_ranks(std::int64_t x) const {
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return x;
  }
};

void expect_tree_sum(const Tensor& total, int logical, std::int64_t count, std::int64_t offset,
                     const std::string& what) {
  for (std::int64_t i = 0; i < total.count(); i += std::max<std::int64_t>(1, count / 997))
    ASSERT_EQ(value_of(total, i), tree_sum(total.dtype, 0, logical, offset + i)) << what << " element " << i;
}

TEST_F(CommunicatorTest, SumHasTheBitsOfTheTreeForEveryDegree) {
  for (int logical : logical_counts()) {
    Communicator group = communicator(logical);
    for (DType dtype : {DType::f32, DType::bf16})
      for (std::int64_t count : odd_sizes) {
        Block shards({group.local_shards(), count}, dtype), elsewhere({count}, dtype);
        fill_leaves(shards.tensor, group.first_shard(), group.local_shards());
        group.sum(shards.tensor, elsewhere.tensor);
        expect_tree_sum(elsewhere.tensor, logical, count, 0,
                        fmt::format("T = {}, {}, {} elements", logical, name_of(dtype), count));

        fill_leaves(shards.tensor, group.first_shard(), group.local_shards());
        group.sum(shards.tensor, shards.tensor.at(0));
        expect_tree_sum(shards.tensor.at(0), logical, count, 0, "in the first shard's own memory");
      }
  }
}

TEST_F(CommunicatorTest, ScatterAndGatherAreTheSum) {
  for (int logical : logical_counts())
    for (DType dtype : {DType::f32, DType::bf16})
      for (std::int64_t outer : {1, 3}) {
        Communicator group = communicator(logical);
        const std::int64_t row = 77, inner = row * ranks, count = outer * inner;
        Block shards({group.local_shards(), outer, inner}, dtype), part({outer, row}, dtype),
            whole({outer, inner}, dtype);
        fill_leaves(shards.tensor, group.first_shard(), group.local_shards());
        group.sum_scatter(shards.tensor, part.tensor, outer);
        for (std::int64_t o = 0; o < outer; ++o)
          for (std::int64_t i = 0; i < row; ++i)
            ASSERT_EQ(value_of(part.tensor, o * row + i),
                      tree_sum(dtype, 0, logical, o * inner + group.rank() * row + i))
                << "part " << group.rank();
        group.gather(part.tensor, whole.tensor, outer);
        expect_tree_sum(whole.tensor, logical, count, 0, "gathered");
      }
}

TEST_F(CommunicatorTest, APartMayLieInTheMemoryItComesFrom) {
  for (int logical : {ranks == 3 ? 3 : 8, 3 * ranks}) {
    Communicator group = communicator(logical);
    for (std::int64_t outer : {1, 2}) {
      const std::int64_t inner = 5 * ranks;
      Block memory({group.local_shards(), outer, inner}, DType::f32);
      fill_leaves(memory.tensor, group.first_shard(), group.local_shards());
      const Tensor whole{memory.tensor.data, {outer, inner}, DType::f32},
          part{memory.tensor.data, {outer, 5}, DType::f32};
      group.sum_scatter(memory.tensor, part, outer);
      group.gather(part, whole, outer);
      expect_tree_sum(whole, logical, outer * inner, 0, "in place");
    }
  }
}

TEST_F(CommunicatorTest, BroadcastMaximumAndScalarsReachEveryRank) {
  const int logical = 3 * ranks;  // of three shards, two sums go on
  Communicator group = communicator(logical);
  for (int root = 0; root < ranks; ++root) {
    Block block({5}, DType::f32);
    for (int i = 0; i < 5; ++i) set_value(block.tensor, i, static_cast<float>(100 * group.rank() + i));
    group.broadcast(block.tensor, root);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(value_of(block.tensor, i), 100 * root + i);
  }

  Block shards({group.local_shards(), 9}, DType::f32);
  fill_leaves(shards.tensor, group.first_shard(), group.local_shards());
  group.maximum(shards.tensor, shards.tensor.at(0));
  for (int i = 0; i < 9; ++i) {
    float expected = leaf(0, i);
    for (int s = 1; s < logical; ++s) expected = std::max(expected, leaf(s, i));
    EXPECT_EQ(value_of(shards.tensor, i), expected);
  }

  std::vector<double> scalars;
  const auto scalar = [](int shard, int i) { return std::sin(shard + 1.0) * (i + 1) / 3; };
  for (int s = 0; s < group.local_shards(); ++s)
    for (int i = 0; i < 3; ++i) scalars.push_back(scalar(group.first_shard() + s, i));
  group.sum_over_shards(scalars);
  for (int i = 0; i < 3; ++i) {
    std::vector<double> level;
    for (int s = 0; s < logical; ++s) level.push_back(scalar(s, i));
    while (level.size() > 1) {
      std::vector<double> next;
      for (std::size_t k = 0; k < level.size(); k += 2)
        next.push_back(k + 1 < level.size() ? level[k] + level[k + 1] : level[k]);
      level = next;
    }
    EXPECT_EQ(scalars[i], level[0]);
  }

  std::int64_t integers[2] = {group.rank() + 1, (std::int64_t{1} << 60) / ranks};
  group.sum_integers(integers);
  EXPECT_EQ(integers[0], ranks * (ranks + 1) / 2);
  EXPECT_EQ(integers[1], (std::int64_t{1} << 60) / ranks * ranks);
}

TEST_F(CommunicatorTest, TensorsOfIntegersAreSummedExactly) {
  const auto integer = [](int shard, std::int64_t i) {  // no f64 holds it
    const std::int64_t size = (std::int64_t{1} << 58) + 1 + 2 * i + shard;
    return (shard + i) % 3 == 0 ? -size : size;
  };
  for (int logical : logical_counts())
    for (std::int64_t count : odd_sizes) {
      Communicator group = communicator(logical);
      Block shards({group.local_shards(), count}, DType::i64), total({count}, DType::i64);
      for (int s = 0; s < group.local_shards(); ++s)
        for (std::int64_t i = 0; i < count; ++i)
          shards.tensor.as<std::int64_t>()[s * count + i] = integer(group.first_shard() + s, i);
      group.sum(shards.tensor, total.tensor);
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t want = 0;
        for (int s = 0; s < logical; ++s) want += integer(s, i);
        ASSERT_EQ(total.tensor.as<std::int64_t>()[i], want) << logical << " shards, element " << i;
      }
    }
}

TEST_F(CommunicatorTest, TheLedgerHoldsTheVolumesOfTheFormulas) {
  Communicator group = communicator(ranks);
  const std::int64_t n = ranks, count = 16 * n, odd = 1001;
  Block shards({count}, DType::bf16), part({16}, DType::bf16), uneven({odd}, DType::f32);
  const auto sent = [&](TrafficClass kind) { return ledger.of(Axis::tensor, kind).bytes; };

  group.sum(shards.tensor, shards.tensor);
  EXPECT_EQ(sent(TrafficClass::tensor), 2 * (n - 1) * 16 * 2)
      << "a sum sends 2 (n-1)/n of its bytes from every rank";
  ledger.clear();
  group.sum_scatter(shards.tensor, part.tensor, 1);
  EXPECT_EQ(sent(TrafficClass::tensor), (n - 1) * 16 * 2);
  ledger.clear();
  group.gather(part.tensor, shards.tensor, 1);
  EXPECT_EQ(sent(TrafficClass::tensor), (n - 1) * 16 * 2);
  EXPECT_EQ(ledger.of(Axis::tensor, TrafficClass::tensor).calls, n > 1 ? 1 : 0);
  ledger.clear();
  group.sum(uneven.tensor, uneven.tensor);
  EXPECT_EQ(sum_over_ranks(sent(TrafficClass::tensor)), 2 * (n - 1) * odd * 4)
      << "over the group, whatever the size";
  ledger.clear();
  std::vector<double> scalars(3);
  group.sum_over_shards(scalars);
  EXPECT_EQ(sum_over_ranks(sent(TrafficClass::scalars)), 2 * (n - 1) * 3 * 8);
  EXPECT_EQ(sent(TrafficClass::tensor), 0);
  ledger.clear();
  group.broadcast(uneven.tensor, ranks - 1);
  EXPECT_EQ(sum_over_ranks(sent(TrafficClass::values)), (n - 1) * odd * 4);
}

TEST_F(CommunicatorTest, ARankWithoutAWholeSubtreeSendsAPartOfEachRoot) {
  Communicator group = communicator(3 * ranks);
  const std::int64_t n = ranks, part = 16, roots = ranks == 1 ? 1 : 2;
  Block shards({3, part * n}, DType::f32), own({part}, DType::f32);
  const auto sent = [&](TrafficClass kind) { return ledger.of(Axis::tensor, kind).bytes; };
  group.sum(shards.tensor, shards.tensor.at(0));
  EXPECT_EQ(sent(TrafficClass::tensor), (roots + 1) * (n - 1) * part * 4);
  ledger.clear();
  group.sum_scatter(shards.tensor, own.tensor, 1);
  EXPECT_EQ(sent(TrafficClass::tensor), roots * (n - 1) * part * 4);
  ledger.clear();
  group.maximum(shards.tensor, shards.tensor.at(0));
  EXPECT_EQ(sent(TrafficClass::tensor), 2 * (n - 1) * part * 4) << "whose order is no matter";
}

TEST_F(CommunicatorTest, EveryMutatedCollectiveIsNoticedAndNoOther) {
  if (ranks == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  Communicator group = communicator(ranks);
  const int rank = group.rank();
  /// Everything that this rank receives from the collectives, one after the other.
  const auto results = [&] {
    std::vector<std::pair<std::string, double>> values;
    Block x({ranks}, DType::f32), part({1}, DType::f32);
    const auto refill = [&] {
      for (int i = 0; i < ranks; ++i) set_value(x.tensor, i, static_cast<float>(1 + rank + 10 * i));
    };
    const auto others = [&] {
      double sum = 0;
      for (int i = 0; i < ranks; ++i) sum += value_of(x.tensor, i) * (i + 1);
      return sum;
    };
    refill();
    group.sum(x.tensor, x.tensor);
    values.emplace_back("tensor.sum", others());
    refill();
    group.sum_scatter(x.tensor, part.tensor, 1);
    values.emplace_back("tensor.sum_scatter", value_of(part.tensor, 0));
    for (int i = 0; i < ranks; ++i) set_value(x.tensor, i, -1);
    set_value(part.tensor, 0, static_cast<float>(rank));
    group.gather(part.tensor, x.tensor, 1);
    values.emplace_back("tensor.gather", others());
    refill();
    group.maximum(x.tensor);
    values.emplace_back("tensor.maximum", rank == ranks - 1 ? 0 : others());
    refill();
    group.broadcast(x.tensor, 0);
    values.emplace_back("tensor.broadcast", rank == 0 ? 0 : others());
    double scalar[] = {1.0 + rank};
    group.sum_over_shards(scalar);
    values.emplace_back("tensor.sum_over_shards", scalar[0]);
    std::int64_t integer[] = {1 + rank};
    group.sum_integers(integer);
    values.emplace_back("tensor.sum_integers", static_cast<double>(integer[0]));
    return values;
  };
  const auto right = results();
  for (const auto& [name, value] : right) {
    set_mutation(name);
    const auto mutated = results();
    for (std::size_t i = 0; i < right.size(); ++i) {
      const bool cannot_tell = (rank == ranks - 1 && mutated[i].first == "tensor.maximum") ||
                               (rank == 0 && mutated[i].first == "tensor.broadcast");
      if (mutated[i].first == name && !cannot_tell) {
        EXPECT_NE(mutated[i].second, right[i].second) << name << " on rank " << rank;
      } else {
        EXPECT_EQ(mutated[i].second, right[i].second) << mutated[i].first << " without " << name;
      }
    }
  }
  set_mutation("data.sum");
  EXPECT_EQ(results(), right) << "another axis";
  set_mutation("");
}

TEST_F(CommunicatorTest, AGroupOnPaperSaysTheRoomThatExchangesTake) {
  if (ranks == 1) GTEST_SKIP() << "a group of one needs none";
  const auto exchange = [&](Communicator& group, std::int64_t count) {
    const std::int64_t local = group.local_shards();
    Block sum({local, count}, DType::f32), shards({local, 5, 4 * ranks}, DType::bf16),
        part({5, 4}, DType::bf16);
    group.sum(sum.tensor, sum.tensor.at(0));
    group.sum_scatter(shards.tensor, part.tensor, 5);
    group.gather(part.tensor, shards.tensor.at(0), 5);
    group.maximum(sum.tensor.at(0));
  };
  for (int logical : {ranks, 3 * ranks, 5 * ranks})  // of five shards ranks have two roots or three
    for (std::int64_t count : {1, 20'001}) {         // the largest is the scattered sum, then the sum
      Communicator paper(backend, logical, OnPaper{ranks, 0}), group = communicator(logical);
      exchange(paper, count);
      EXPECT_GT(paper.scratch_bytes(), 0u);
      group.reserve(paper.scratch_bytes());
      const Memory::Closed closed(memory);
      exchange(group, count);
      EXPECT_EQ(group.scratch_bytes(), paper.scratch_bytes());
      Block larger({group.local_shards(), count + 100'000}, DType::f32);
      EXPECT_THROW(group.sum(larger.tensor, larger.tensor.at(0)), Error) << "grew while memory was closed";
    }
}

TEST_F(CommunicatorTest, WaitingRanksLetOtherWorkMove) {
  Communicator group = communicator(ranks);
  std::int64_t turns = 0;
  waiting.on_progress([&] { ++turns; });
  if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  std::int64_t one[] = {1};
  group.sum_integers(one);
  if (ranks > 1 && group.rank() > 0) {
    EXPECT_GT(turns, 10);
  }
  EXPECT_EQ(one[0], ranks);
}

TEST_F(CommunicatorTest, ADegreeThatSplitsASubtreeIsRefused) {
  if (ranks != 3) GTEST_SKIP() << "three ranks only";
  EXPECT_THROW(communicator(4), Error);
}

}  // namespace
}  // namespace mindpipe
