#include "plan/cut_search.h"

#include <algorithm>

#include "program/partition.h"

namespace mindpipe {
namespace {

/// Boundaries that are moved together, at most.
constexpr std::size_t most_together = 3;

/// Cuts with so many boundaries from each one on a block further up or down.
std::vector<std::vector<int>> cuts_beside(const std::vector<int>& first_block) {
  std::vector<std::vector<int>> cuts;
  for (std::size_t together = 1; together <= most_together; ++together)
    for (std::size_t begin = 1; begin + together < first_block.size(); ++begin)
      for (const int step : {-1, 1}) {
        std::vector<int> moved = first_block;
        for (std::size_t cut = begin; cut < begin + together; ++cut) moved[cut] += step;
        if (std::adjacent_find(moved.begin(), moved.end(), std::greater_equal<>()) == moved.end())
          cuts.push_back(std::move(moved));
      }
  return cuts;
}

/// Cuts by their bounds, the lowest first.
std::vector<std::pair<double, std::vector<int>>> by_bound(const std::vector<std::vector<int>>& cuts,
                                                          const CutCosts& costs) {
  std::vector<std::pair<double, std::vector<int>>> bounded;
  for (const std::vector<int>& cut : cuts) bounded.emplace_back(costs.bound(cut), cut);
  std::stable_sort(bounded.begin(), bounded.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return bounded;
}

}  // namespace

std::vector<int> cheap_cuts(std::vector<int> first_block, double cost, const CutCosts& costs, int most,
                            std::size_t few) {
  const std::vector<std::vector<int>> all =
      every_cut(first_block.back(), static_cast<int>(first_block.size()) - 1, few);
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [bound, cut] : by_bound(all.empty() ? cuts_beside(first_block) : all, costs)) {
      if (bound >= cost) break;
      if (cut == first_block) continue;
      if (most-- <= 0) return first_block;
      const double simulated = costs.simulated(cut);
      if (simulated >= cost) continue;
      cost = simulated;
      first_block = cut;
      moved = all.empty();
      if (moved) break;
    }
  }
  return first_block;
}

}  // namespace mindpipe
