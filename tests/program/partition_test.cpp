#include "program/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "core/check.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::bad_configuration);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Partition, EveryCutIsThereOnce) {
  const std::vector<std::vector<int>> cuts = every_cut(8, 4, 256);
  EXPECT_EQ(cuts.size(), 35U);
  EXPECT_EQ(std::set(cuts.begin(), cuts.end()).size(), 35U);
  for (const std::vector<int>& cut : cuts) {
    EXPECT_THAT(cut, ::testing::SizeIs(5));
    EXPECT_EQ(cut.front(), 0);
    EXPECT_EQ(cut.back(), 8);
    EXPECT_TRUE(std::adjacent_find(cut.begin(), cut.end(), std::greater_equal<>()) == cut.end());
  }
  EXPECT_THAT(every_cut(3, 3, 256), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(every_cut(5, 1, 256), ElementsAre(ElementsAre(0, 5)));
  EXPECT_THAT(every_cut(2, 3, 256), ::testing::IsEmpty());
  EXPECT_THAT(every_cut(8, 4, 34), ::testing::IsEmpty()) << "there are more";
}

TEST(Partition, EqualBlocksAreCutEvenly) {
  EXPECT_THAT(balanced_cuts({1, 1, 1, 1, 1, 1, 1, 1}, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(balanced_cuts({5, 5, 5}, 1), ElementsAre(0, 3));
  EXPECT_THAT(balanced_cuts({1, 2, 3}, 3), ElementsAre(0, 1, 2, 3));
}

std::int64_t costliest_of_v(const std::vector<std::int64_t>& cost, const std::vector<int>& first) {
  const auto sum = [&](std::size_t chunk) {
    return std::accumulate(cost.begin() + first[chunk], cost.begin() + first[chunk + 1], std::int64_t{0});
  };
  std::int64_t most = 0;
  for (std::size_t stage = 0; 2 * stage + 2 < first.size(); ++stage)
    most = std::max(most, sum(stage) + sum(first.size() - 2 - stage));
  return most;
}

TEST(Partition, OfAVBothChunksOfAStageCountTogether) {
  EXPECT_THAT(cuts_in_v({1, 1, 1, 1, 1, 1, 1, 1}, 2), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(cuts_in_v({5, 1, 1, 1, 1, 5}, 2), ElementsAre(0, 1, 3, 5, 6)) << "the ends are dear";
  EXPECT_THAT(cuts_in_v({1, 2, 2, 2, 1, 6}, 2), ElementsAre(0, 1, 3, 5, 6)) << "a head of half the model";
  EXPECT_THAT(refusal_of([] { cuts_in_v({1, 1, 1}, 2); }), HasSubstr("cannot fill 4 chunks"));
}

TEST(Partition, NoCutsOfAVAreCheaperWhereTheEndsAreDear) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 60; ++draw) {
    std::vector<std::int64_t> cost(6 + random() % 5, 10);
    cost.front() = 1 + static_cast<std::int64_t>(random() % 5);
    cost.back() = 10 + static_cast<std::int64_t>(random() % 30);
    const int stages = 2 + draw % 2, blocks = static_cast<int>(cost.size());
    std::int64_t least = std::accumulate(cost.begin(), cost.end(), std::int64_t{0});
    std::vector<int> first(2 * stages + 1, 0);
    first.back() = blocks;
    const std::function<void(int)> all = [&](int chunk) {
      if (chunk == 2 * stages) least = std::min(least, costliest_of_v(cost, first));
      for (int at = first[chunk - 1] + 1; chunk < 2 * stages && at <= blocks - 2 * stages + chunk; ++at) {
        first[chunk] = at;
        all(chunk + 1);
      }
    };
    all(1);
    EXPECT_EQ(costliest_of_v(cost, cuts_in_v(cost, stages)), least) << draw;
  }
}

TEST(Partition, OfEquallyGoodCutsTheEarliestIsTaken) {
  EXPECT_THAT(balanced_cuts({1, 1, 1, 1, 1}, 2), ElementsAre(0, 2, 5));
}

TEST(Partition, CostsCountNotBlocks) {
  EXPECT_THAT(balanced_cuts({1, 1, 1, 1, 1, 9}, 2), ElementsAre(0, 5, 6));
  EXPECT_THAT(balanced_cuts({9, 1, 1, 1, 1, 1}, 2), ElementsAre(0, 1, 6));
}

TEST(Partition, NoOtherCutIsBetter) {
  const std::vector<std::int64_t> cost{7, 1, 3, 9, 2, 2, 8, 4, 5};
  for (int chunks = 1; chunks <= 5; ++chunks) {
    std::int64_t best = 1000;
    for (int mask = 0; mask < 1 << 8; ++mask) {
      if (__builtin_popcount(mask) != chunks - 1) continue;
      std::int64_t most = 0, sum = 0;
      for (int i = 0; i < 9; ++i) {
        sum += cost[i];
        most = std::max(most, sum);
        if (mask >> i & 1) sum = 0;
      }
      best = std::min(best, most);
    }
    const auto first = balanced_cuts(cost, chunks);
    std::int64_t most = 0;
    for (int c = 0; c < chunks; ++c) {
      std::int64_t sum = 0;
      for (int i = first[c]; i < first[c + 1]; ++i) sum += cost[i];
      most = std::max(most, sum);
    }
    EXPECT_EQ(most, best) << chunks;
  }
}

TEST(Partition, EvenCutsAreOfTheBestTheMostEqual) {
  std::mt19937 draw(3);
  const auto of_chunks = [](const std::vector<std::int64_t>& cost, const std::vector<int>& first) {
    std::pair<std::int64_t, std::int64_t> most_and_squares{0, 0};
    for (std::size_t c = 0; c + 1 < first.size(); ++c) {
      EXPECT_LT(first[c], first[c + 1]);
      const auto sum = std::accumulate(cost.begin() + first[c], cost.begin() + first[c + 1], std::int64_t{0});
      most_and_squares.first = std::max(most_and_squares.first, sum);
      most_and_squares.second += sum * sum;
    }
    return most_and_squares;
  };
  for (int round = 0; round < 40; ++round) {
    std::vector<std::int64_t> cost(4 + round % 7);
    for (std::int64_t& of : cost) of = draw() % 20;
    cost[round % cost.size()] += round % 3 == 0 ? 60 : 0;
    const int blocks = static_cast<int>(cost.size());
    for (int chunks = 1; chunks <= blocks; ++chunks) {
      auto best = std::pair{std::int64_t{1} << 40, std::int64_t{0}};
      for (int mask = 0; mask < 1 << (blocks - 1); ++mask) {
        if (__builtin_popcount(mask) != chunks - 1) continue;
        std::vector<int> first{0};
        for (int i = 0; i + 1 < blocks; ++i)
          if (mask >> i & 1) first.push_back(i + 1);
        first.push_back(blocks);
        best = std::min(best, of_chunks(cost, first));
      }
      EXPECT_EQ(of_chunks(cost, even_cuts(cost, chunks)), best) << round << ", " << chunks << " chunks";
    }
  }
  EXPECT_THAT(even_cuts({1, 1, 1, 1, 1, 1, 9}, 4), ElementsAre(0, 2, 4, 6, 7));
  EXPECT_THAT(even_cuts({9, 9, 9, 9, 9, 9, 9, 9}, 2, {3, 1}), ElementsAre(0, 2, 8))
      << "a slow chunk has fewer";
  EXPECT_THAT(even_cuts({9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 3, {1, 1, 2}), ElementsAre(0, 4, 8, 10));
}

TEST(Partition, MoreStagesThanBlocksAreRefused) {
  EXPECT_EQ(refusal_of([] {
              balanced_cuts({1, 1, 1}, 4);
            }),
            "the model has 3 blocks, which cannot fill 4 chunks of a pipeline (stages x chunks; take a "
            "smaller grid.pipeline or "
            "schedule.chunks)");
}

TEST(Partition, ManualCutsAreTakenAsTheyAre) {
  EXPECT_THAT(manual_cuts({1, 4}, 6, 3), ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(refusal_of([] { manual_cuts({1}, 6, 3); }),
              HasSubstr("schedule.cuts has 1 entries (a pipeline of 3 chunks, stages x chunks, has 2 cuts)"));
  EXPECT_THAT(refusal_of([] {
                manual_cuts({4, 4}, 6, 3);
              }),
              HasSubstr("schedule.cuts names block 4 after block 4"));
  EXPECT_THAT(refusal_of([] {
                manual_cuts({1, 6}, 6, 3);
              }),
              HasSubstr("schedule.cuts names block 6 after block 1 (cuts ascend from 1 to 5"));
}

}  // namespace
}  // namespace mindpipe
