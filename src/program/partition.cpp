#include "program/partition.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace mindpipe {

std::vector<int> balanced_cuts(const std::vector<std::int64_t>& cost, int chunks) {
  const int blocks = static_cast<int>(cost.size());
  MP_REQUIRE(chunks <= blocks, Exit::bad_configuration,
             "the model has {} blocks, which cannot fill {} chunks of a pipeline (stages x chunks; take a smaller grid.pipeline or "
             "schedule.chunks)",
             blocks, chunks);
  MP_CHECK(chunks > 0, "{} chunks", chunks);
  std::vector<std::int64_t> before(blocks + 1, 0);
  for (int i = 0; i < blocks; ++i) before[i + 1] = before[i] + cost[i];
  // best[k][i]: the costliest of k chunks, at best, that hold the blocks from i on.
  const std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<std::int64_t>> best(chunks + 1, std::vector<std::int64_t>(blocks + 1, never));
  best[0][blocks] = 0;
  for (int k = 1; k <= chunks; ++k)
    for (int i = 0; i + k <= blocks; ++i)
      for (int next = i + 1; next + k - 1 <= blocks; ++next)
        if (best[k - 1][next] != never) best[k][i] = std::min(best[k][i], std::max(before[next] - before[i], best[k - 1][next]));

  const std::int64_t limit = best[chunks][0];
  std::vector<int> first{0};
  for (int k = chunks - 1; k > 0; --k) {
    int next = first.back() + 1;
    while (best[k][next] > limit) ++next;
    first.push_back(next);
  }
  first.push_back(blocks);
  return first;
}

std::vector<int> manual_cuts(const std::vector<int>& cuts, int blocks, int chunks) {
  MP_REQUIRE(static_cast<int>(cuts.size()) == chunks - 1, Exit::bad_configuration,
             "schedule.cuts has {} entries (a pipeline of {} chunks, stages x chunks, has {} cuts)", cuts.size(), chunks, chunks - 1);
  std::vector<int> first{0};
  for (int cut : cuts) {
    MP_REQUIRE(cut > first.back() && cut < blocks, Exit::bad_configuration,
               "schedule.cuts names block {} after block {} (cuts ascend from 1 to {}, the last block, and leave no chunk empty)", cut,
               first.back(), blocks - 1);
    first.push_back(cut);
  }
  first.push_back(blocks);
  return first;
}

}  // namespace mindpipe
