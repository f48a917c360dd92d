#include "cpu/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace mindpipe {
namespace {

TEST(Shares, EveryPieceIsDoneOnce) {
  for (int threads : {1, 2, 3, 7, 300})
    for (int pieces : {0, 1, 2, 5, 64}) {
      std::vector<std::atomic<int>> done(pieces);
      in_shares(threads, pieces, [&](int thread, int piece) {
        EXPECT_LT(thread, threads);
        ++done[piece];
      });
      for (int piece = 0; piece < pieces; ++piece)
        EXPECT_EQ(done[piece], 1) << threads << " threads, " << pieces << " pieces";
    }
}

TEST(Shares, ASlowThreadHoldsUpOnePiece) {
  std::atomic<int> of_slow{0};
  in_shares(2, 16, [&](int thread, int) {
    if (thread != 0) return;
    ++of_slow;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  EXPECT_LE(of_slow, 2) << "of sixteen, eight of which were its share";
}

TEST(Ranges, CoverEverythingOnce) {
  for (const std::int64_t count : {0, 1, 99, 100'000}) {
    std::vector<std::atomic<char>> seen(count);
    in_ranges(3, count, 10, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) ++seen[i];
    });
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; })) << count;
  }
}

}  // namespace
}  // namespace mindpipe
