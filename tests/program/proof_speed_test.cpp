// thorough
#include <gtest/gtest.h>

#include <algorithm>

#include "core/clock.h"
#include "peak_growth.h"
#include "program/check/sum_book.h"
#include "program/checked_lists.h"

// How long the proof takes for as many ranks as nobody can test with.
namespace mindpipe {
namespace {

/// Pipeline 16 x data x tensor 8: 96 blocks of large units, 16 micro-batches a rank.
Outline of_many_ranks(int data, bool sharded) {
  Outline outline = equal_stages(16, 16, 1, {}, 6);
  outline.data = data;
  outline.tensor = 8;
  outline.sharded_optimizer = sharded;
  tie(outline, {0, outline.all_blocks() - 1}, 40 << 20);
  for (UnitCost& unit : outline.units)
    if (unit.values > 0) {
      unit.gradients = 100 << 20;
      unit.values = 50 << 20;
    }
  return outline;
}

TEST(ProofSpeed, Of16384RanksIsWithinTwoSecondsAnd256MiB) {
  for (const int data : {128, 1024})
    for (const bool sharded : {false, true}) {
      const Outline outline = of_many_ranks(data, sharded);
      const Program program = plan_step(outline, one_forward_one_backward_order({16, 16})).program;
      const PeakGrowth growth;
      const std::int64_t begin = now_ns();
      EXPECT_TRUE(check(program, outline).empty());
      const double seconds = seconds_since(begin);
      EXPECT_LT(seconds, 2) << data;
      if (growth.is_known()) {
        EXPECT_LT(growth.bytes(), std::int64_t{256} << 20) << data;
      }
      std::cout << data << " data ranks, sharded " << sharded << ": " << seconds << " s, "
                << (growth.bytes() >> 20) << " MiB\n";
    }
}

TEST(ProofSpeed, OfAStretchIsAtMostHalfAsLongAgainWithItsSums) {
  Outline outline = sample_space(16, 8, 2);
  outline.data = 2;
  Lists lists = lists_of_subnets(outline, {.admission = 32}, 64, 7);
  const auto seconds_to_read = [&] {
    const std::int64_t begin = now_ns();
    Reading reading(outline, ListOf::subnets, lists.rank);
    reading.extend(lists.list());
    while (reading.next()) continue;
    return seconds_since(begin);
  };
  std::vector<double> shares;
  for (int turn = 0; turn < 15; ++turn) {
    const std::int64_t begin = now_ns();
    EXPECT_TRUE(lists.errors().empty());
    const double all = seconds_since(begin);
    const std::int64_t begin_sums = now_ns();
    Reading reading(outline, ListOf::subnets, lists.rank);
    SumBook book(reading);
    const std::vector<int>& cut = outline.first_block;
    for (const Subnet& subnet : lists.subnets) {
      std::vector<UnitUse> uses;
      for (int block = cut[7]; block < cut[8]; ++block)
        for (const int unit : outline.units_used[block][subnet.choice[block]]) uses.push_back({unit, block});
      book.expect(subnet.id, cut[7], cut[8], uses);
    }
    reading.extend(lists.list());
    while (reading.next()) book.see();
    shares.push_back((seconds_since(begin_sums) - seconds_to_read()) / all);
    EXPECT_TRUE(reading.findings.empty());
  }
  std::nth_element(shares.begin(), shares.begin() + 7, shares.end());
  const double longer = 1 / (1 - shares[7]);
  std::cout << "the proof of a stretch of 64 subnets on 16 stages takes " << longer
            << " times as long with its sums\n";
  EXPECT_LT(longer, 1.5);
}

}  // namespace
}  // namespace mindpipe
