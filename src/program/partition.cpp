#include "program/partition.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace mindpipe {
namespace {

/// For each block, how few chunks of at most `limit` hold the blocks from it on: each takes as many as it
/// can. `limit` is no less than any block's cost.
std::vector<int> fewest_chunks(const std::vector<std::int64_t>& cost, std::int64_t limit) {
  const int blocks = static_cast<int>(cost.size());
  std::vector<int> fewest(blocks + 1, 0);
  std::int64_t sum = 0;
  for (int i = blocks, end = blocks; i-- > 0;) {
    sum += cost[i];
    while (sum > limit) sum -= cost[--end];
    fewest[i] = 1 + fewest[end];
  }
  return fewest;
}

}  // namespace

std::vector<int> balanced_cuts(const std::vector<std::int64_t>& cost, int chunks) {
  const int blocks = static_cast<int>(cost.size());
  MP_REQUIRE(chunks <= blocks, Exit::bad_configuration,
             "the model has {} blocks, which cannot fill {} chunks of a pipeline (stages x chunks; take a "
             "smaller grid.pipeline or schedule.chunks)",
             blocks, chunks);
  MP_CHECK(chunks > 0, "{} chunks", chunks);
  // The least limit that some cut keeps lies between the costliest block and the whole.
  std::int64_t least = *std::max_element(cost.begin(), cost.end()),
               most = std::accumulate(cost.begin(), cost.end(), std::int64_t{0});
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (fewest_chunks(cost, middle)[0] <= chunks) most = middle;
    else least = middle + 1;
  }
  const std::vector<int> fewest = fewest_chunks(cost, least);
  std::vector<int> first{0};
  for (int left = chunks - 1; left > 0; --left) {
    int next = first.back() + 1;
    while (fewest[next] > left) ++next;
    first.push_back(next);
  }
  first.push_back(blocks);
  return first;
}

std::vector<int> manual_cuts(const std::vector<int>& cuts, int blocks, int chunks) {
  MP_REQUIRE(static_cast<int>(cuts.size()) == chunks - 1, Exit::bad_configuration,
             "schedule.cuts has {} entries (a pipeline of {} chunks, stages x chunks, has {} cuts)",
             cuts.size(), chunks, chunks - 1);
  std::vector<int> first{0};
  for (int cut : cuts) {
    MP_REQUIRE(cut > first.back() && cut < blocks, Exit::bad_configuration,
               "schedule.cuts names block {} after block {} (cuts ascend from 1 to {}, the last block, and "
               "leave no chunk empty)",
               cut, first.back(), blocks - 1);
    first.push_back(cut);
  }
  first.push_back(blocks);
  return first;
}

}  // namespace mindpipe
