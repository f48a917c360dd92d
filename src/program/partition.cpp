#include "program/partition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
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

std::int64_t costliest_chunk(const std::vector<std::int64_t>& cost, const std::vector<int>& first) {
  std::int64_t most = 0;
  for (std::size_t chunk = 0; chunk + 1 < first.size(); ++chunk)
    most = std::max(
        most, std::accumulate(cost.begin() + first[chunk], cost.begin() + first[chunk + 1], std::int64_t{0}));
  return most;
}

std::int64_t cost_there(const std::vector<double>& slower, std::size_t chunk, std::int64_t cost) {
  return slower.empty() ? cost : std::llround(static_cast<double>(cost) * slower[chunk]);
}

/// What the costliest chunk costs at best where chunks differ in what their blocks cost there.
std::int64_t least_costliest(const std::vector<std::int64_t>& cost, const std::vector<double>& slower) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const std::size_t blocks = cost.size();
  std::vector<std::int64_t> best(blocks + 1, never);  // of the first blocks, by the chunks so far
  best[0] = 0;
  for (std::size_t chunk = 0; chunk < slower.size(); ++chunk) {
    std::vector<std::int64_t> next(blocks + 1, never);
    for (std::size_t end = chunk + 1; end <= blocks; ++end) {
      std::int64_t sum = 0;
      for (std::size_t first = end; first-- > chunk;) {
        sum += cost[first];
        next[end] = std::min(next[end], std::max(best[first], cost_there(slower, chunk, sum)));
      }
    }
    best.swap(next);
  }
  return best[blocks];
}

/// The best ways to cut the first blocks, for one more chunk at a time. The best last cut of more blocks is
/// never before that of fewer, so that each half of a range looks at its part of the cuts alone.
class EvenCuts {
 public:
  EvenCuts(const std::vector<std::int64_t>& cost, std::int64_t limit, const std::vector<double>& slower)
      : limit_(limit), slower_(slower), sums_(cost.size() + 1, 0), best_(cost.size() + 1, never) {
    std::partial_sum(cost.begin(), cost.end(), sums_.begin() + 1);
    best_[0] = 0;
  }
  void add_chunk() {
    next_.assign(best_.size(), never);
    last_cuts_.emplace_back(best_.size(), 0);
    const int blocks = static_cast<int>(best_.size()) - 1;
    solve(1, blocks, 0, blocks - 1);
    best_.swap(next_);
  }
  std::vector<int> cuts() const {
    std::vector<int> first{static_cast<int>(best_.size()) - 1};
    for (auto last = last_cuts_.rbegin(); last != last_cuts_.rend(); ++last)
      first.push_back((*last)[first.back()]);
    std::reverse(first.begin(), first.end());
    return first;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  double squared(int first, int end) const {
    const std::int64_t sum = cost_there(slower_, last_cuts_.size() - 1, sums_[end] - sums_[first]);
    return sum > limit_ ? never : static_cast<double>(sum) * static_cast<double>(sum);
  }
  void solve(int begin, int end, int least, int most) {
    if (begin > end) return;
    const int middle = begin + (end - begin) / 2;
    int& cut = last_cuts_.back()[middle] = std::min(most, middle - 1);
    for (int at = std::min(most, middle - 1); at >= least; --at) {
      const double sum = best_[at] + squared(at, middle);
      if (sum > next_[middle] || sum == never) continue;
      next_[middle] = sum;
      cut = at;
    }
    const int found = cut;
    solve(begin, middle - 1, least, found);
    solve(middle + 1, end, next_[middle] == never ? least : found, most);
  }

  std::int64_t limit_;
  const std::vector<double>& slower_;
  std::vector<std::int64_t> sums_;
  std::vector<double> best_, next_;
  std::vector<std::vector<int>> last_cuts_;
};

}  // namespace

std::vector<int> even_cuts(const std::vector<std::int64_t>& cost, int chunks,
                           const std::vector<double>& slower) {
  const std::vector<int> balanced = balanced_cuts(cost, chunks);
  EvenCuts even(cost, slower.empty() ? costliest_chunk(cost, balanced) : least_costliest(cost, slower),
                slower);
  for (int chunk = 0; chunk < chunks; ++chunk) even.add_chunk();
  return even.cuts();
}

std::vector<int> near_cuts(const std::vector<std::int64_t>& cost, const std::vector<int>& from,
                           const std::vector<double>& slower) {
  const std::size_t chunks = from.size() - 1;
  const std::int64_t limit = least_costliest(cost, slower);
  std::vector<std::int64_t> sums(cost.size() + 1, 0);
  std::partial_sum(cost.begin(), cost.end(), sums.begin() + 1);
  const auto fits = [&](std::size_t chunk, int first, int end) {
    return cost_there(slower, chunk, sums[end] - sums[first]) <= limit;
  };
  // For each boundary and block: where the next one may lie, nearest to where it was; 0: nowhere.
  const int blocks = static_cast<int>(cost.size());
  std::vector<std::vector<int>> next(chunks, std::vector<int>(cost.size() + 1));
  const auto reaches_end = [&](int distance) {
    for (std::size_t i = chunks; i-- > 0;)
      for (int first = 0; first <= blocks; ++first) {
        int& nearest = next[i][first] = 0;
        for (int end = first + 1; end <= blocks && fits(i, first, end); ++end) {
          const int away = std::abs(end - from[i + 1]);
          const bool goes_on = i + 1 == chunks ? end == blocks : away <= distance && next[i + 1][end] > 0;
          if (goes_on && (nearest == 0 || away < std::abs(nearest - from[i + 1]))) nearest = end;
        }
      }
    return next[0][0] > 0;
  };
  for (int distance = 0; !reaches_end(distance); ++distance)
    MP_CHECK(distance < blocks, "no cut is as cheap as the cheapest");
  std::vector<int> near{0};
  for (std::size_t i = 0; i < chunks; ++i) near.push_back(next[i][near.back()]);
  return near;
}

namespace {

void require_blocks(int blocks, int chunks) {
  MP_REQUIRE(chunks <= blocks, Exit::bad_configuration,
             "the model has {} blocks, which cannot fill {} chunks of a pipeline (stages x chunks; take a "
             "smaller grid.pipeline or schedule.chunks)",
             blocks, chunks);
  MP_CHECK(chunks > 0, "{} chunks", chunks);
}

/// Stages that take blocks from both ends of a list.
class FromBothEnds {
 public:
  FromBothEnds(const std::vector<std::int64_t>& cost, int stages)
      : blocks_(static_cast<int>(cost.size())), stages_(stages), sums_(cost.size() + 1, 0) {
    std::partial_sum(cost.begin(), cost.end(), sums_.begin() + 1);
  }

  /// Cuts in which each stage but the last takes as much as a limit allows, a block at a time for the chunk
  /// that is cheaper so far; none where the last stage is left with more.
  std::vector<int> cuts(std::int64_t limit) const {
    std::vector<int> first(2 * stages_ + 1, 0);
    first.back() = blocks_;
    int front = 0, back = blocks_;
    for (int stage = 0; stage + 1 < stages_; ++stage) {
      const int behind = front++, before = back--;
      const auto takes = [&](int end, int begin) {
        return sums_[end] - sums_[behind] + sums_[before] - sums_[begin] <= limit;
      };
      if (!takes(front, back)) return {};
      while (back - front > 2 * (stages_ - 1 - stage)) {
        const bool prefers_front = sums_[front] - sums_[behind] <= sums_[before] - sums_[back];
        const bool may_front = takes(front + 1, back), may_back = takes(front, back - 1);
        if (!may_front && !may_back) break;
        if (may_front && (prefers_front || !may_back)) ++front;
        else --back;
      }
      first[stage + 1] = front;
      first[2 * stages_ - 1 - stage] = back;
    }
    if (sums_[back] - sums_[front] > limit) return {};
    const auto middle = std::lower_bound(sums_.begin() + front + 1, sums_.begin() + back - 1,
                                         (sums_[front] + sums_[back]) / 2);
    first[stages_] = static_cast<int>(middle - sums_.begin());
    return first;
  }
  std::int64_t all() const { return sums_.back(); }
  /// How uneven cuts are: the costliest stage, then squares of stages and of chunks. Less is better.
  std::array<double, 3> unevenness(const std::vector<int>& first) const {
    std::array<double, 3> sums{};
    for (int stage = 0; stage < stages_; ++stage) {
      const double down = of_chunk(first, stage), up = of_chunk(first, 2 * stages_ - 1 - stage);
      sums[0] = std::max(sums[0], down + up);
      sums[1] += (down + up) * (down + up);
      sums[2] += down * down + up * up;
    }
    return sums;
  }

 private:
  double of_chunk(const std::vector<int>& first, int chunk) const {
    return static_cast<double>(sums_[first[chunk + 1]] - sums_[first[chunk]]);
  }

  int blocks_, stages_;
  std::vector<std::int64_t> sums_;
};

}  // namespace

std::vector<int> cuts_in_v(const std::vector<std::int64_t>& cost, int stages) {
  require_blocks(static_cast<int>(cost.size()), 2 * stages);
  const FromBothEnds ends(cost, stages);
  std::int64_t least = 0, most = ends.all();
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (ends.cuts(middle).empty()) least = middle + 1;
    else most = middle;
  }
  std::vector<int> best = ends.cuts(least);
  const std::vector<int> even = balanced_cuts(cost, 2 * stages);
  if (best.empty() || ends.unevenness(even) < ends.unevenness(best)) best = even;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t cut = 1; cut + 1 < best.size(); ++cut)
      for (const int step : {-1, 1}) {
        auto other = with_boundary_moved(best, cut, step);
        if (!other || ends.unevenness(*other) >= ends.unevenness(best)) continue;
        best = std::move(*other);
        moved = true;
      }
  }
  return best;
}

std::optional<std::vector<int>> with_boundary_moved(std::vector<int> first, std::size_t chunk, int by) {
  first[chunk] += by;
  if (first[chunk] <= first[chunk - 1] || first[chunk] >= first[chunk + 1]) return std::nullopt;
  return first;
}

std::vector<std::vector<int>> every_cut(int blocks, int chunks, std::size_t most) {
  std::vector<std::vector<int>> cuts;
  std::vector<int> cut(chunks + 1);
  std::iota(cut.begin(), cut.end(), 0);  // the last chunk has all that is left
  for (cut.back() = blocks; blocks >= chunks;) {
    if (cuts.size() == most) return {};
    cuts.push_back(cut);
    int at = chunks - 1;
    while (at > 0 && cut[at] == blocks - (chunks - at)) --at;
    if (at == 0) break;
    ++cut[at];
    for (int behind = at + 1; behind < chunks; ++behind) cut[behind] = cut[behind - 1] + 1;
  }
  return cuts;
}

std::vector<int> balanced_cuts(const std::vector<std::int64_t>& cost, int chunks) {
  const int blocks = static_cast<int>(cost.size());
  require_blocks(blocks, chunks);
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

std::vector<int> manual_cuts(const std::vector<int>& cuts, int blocks, int chunks, std::string_view key) {
  MP_REQUIRE(static_cast<int>(cuts.size()) == chunks - 1, Exit::bad_configuration,
             "{} has {} entries (a pipeline of {} chunks, stages x chunks, has {} cuts)", key, cuts.size(),
             chunks, chunks - 1);
  std::vector<int> first{0};
  for (int cut : cuts) {
    MP_REQUIRE(cut > first.back() && cut < blocks, Exit::bad_configuration,
               "{} names block {} after block {} (cuts ascend from 1 to {}, the last block, and leave no "
               "chunk empty)",
               key, cut, first.back(), blocks - 1);
    first.push_back(cut);
  }
  first.push_back(blocks);
  return first;
}

}  // namespace mindpipe
