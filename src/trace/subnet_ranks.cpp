#include "trace/subnet_ranks.h"

#include <algorithm>
#include <cmath>

#include "core/middle.h"
#include "trace/rank_speeds.h"

namespace mindpipe {
namespace {

/// What one rank took for its subnets beside their prices.
struct RankBesidePrices {
  int rank = 0;
  std::vector<PricedPasses> passes;
  double usual = 1;   ///< the median of all
  double unsure = 0;  ///< share by which that may be off by chance
};

RankBesidePrices beside_prices(int rank, std::span<const PricedPasses> passes) {
  RankBesidePrices beside{.rank = rank};
  std::vector<double> times, logs;
  for (const PricedPasses& pass : passes) {
    if (pass.rank != rank || pass.times <= 0) continue;
    beside.passes.push_back(pass);
    times.push_back(pass.times);
    logs.push_back(std::log(pass.times));
  }
  beside.usual = median_of(times);
  beside.unsure = beyond_scatter(spread_of(logs), static_cast<double>(logs.size()));
  return beside;
}

/// Ranks of one stage, each the first of those that share its products, the fastest first.
std::vector<RankBesidePrices> ranks_of_stage(const ReplayGraph& graph, int stage,
                                             std::span<const PricedPasses> passes) {
  std::vector<RankBesidePrices> ranks;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const Coord at = coord_at(graph.grid(), rank);
    if (at.pipeline != stage || at.tensor != 0) continue;
    if (RankBesidePrices beside = beside_prices(rank, passes); std::ssize(beside.passes) >= fewest_steps)
      ranks.push_back(std::move(beside));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankBesidePrices& a, const RankBesidePrices& b) { return a.usual < b.usual; });
  return ranks;
}

/// What the subnets took if a rank and those that share its products computed so many times as long.
std::int64_t end_with(const ReplayGraph& graph, const ReplayTimes& measured, int rank, double factor) {
  ReplayTimes times = measured;
  for (int other = rank; other < rank + graph.grid().tensor; ++other)
    for (int action = graph.first_of(other); action < graph.first_of(other + 1); ++action)
      if (is_work(graph.at(action))) scale_computed(times.rows.front(), times, action, factor);
  return replayed_period(graph, times, 1);
}

}  // namespace

std::vector<Cause> slow_ranks_of_subnets(const ReplayGraph& graph, const ReplayTimes& measured,
                                         std::span<const PricedPasses> passes) {
  std::vector<Cause> found;
  const std::int64_t whole = replayed_period(graph, measured, 1);
  for (int stage = 0; stage < graph.grid().pipeline; ++stage) {
    const std::vector<RankBesidePrices> ranks = ranks_of_stage(graph, stage, passes);
    if (ranks.size() < 2) continue;
    const RankBesidePrices& peers = ranks[(ranks.size() - 1) / 2];
    for (const RankBesidePrices& rank : ranks) {
      const double factor = rank.usual / peers.usual;
      if (factor < std::max(slower, 1 + std::hypot(rank.unsure, peers.unsure))) continue;
      Cause cause{.kind = Cause::slow_rank,
                  .rank = rank.rank,
                  .stage = stage,
                  .with_sharers = graph.grid().tensor > 1,
                  .factor = factor};
      std::int64_t slow = 0;
      for (const PricedPasses& pass : rank.passes)
        if (pass.times >= slower * peers.usual && slow++ == 0) cause.since = pass.subnet;
      cause.share = static_cast<double>(slow) / static_cast<double>(rank.passes.size());
      cause.saves = whole - end_with(graph, measured, rank.rank, 1 / factor);
      if (cause.share >= in_most_steps &&
          static_cast<double>(cause.saves) >= worth_saying * static_cast<double>(whole))
        found.push_back(cause);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Cause& a, const Cause& b) { return a.saves > b.saves; });
  return found;
}

}  // namespace mindpipe
