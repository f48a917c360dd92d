#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "config/config.h"
#include "plan/priced_blocks.h"
#include "plan/search_once.h"

namespace mindpipe {
namespace {

using Fate = LayoutCandidate::Fate;

/// Forwards of chunks in the steps that were tried, behind which no other grid is searched by itself.
constexpr std::int64_t many_passes = 25'000;

/// Grids whose layouts may be better than the best that is known, the most promising first.
std::vector<Coord> promising_grids(const LayoutSearch& search) {
  std::vector<std::pair<double, Coord>> least;
  for (const LayoutCandidate& one : search.all) {
    if (one.fate == Fate::refused) continue;
    const double cost = one.least_cost(search.price);
    const auto found = std::find_if(least.begin(), least.end(),
                                    [&](const auto& known) { return known.second == one.layout.grid; });
    if (found == least.end()) least.emplace_back(cost, one.layout.grid);
    else found->first = std::min(found->first, cost);
  }
  std::stable_sort(least.begin(), least.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Coord> grids;
  for (const auto& [cost, grid] : least)
    if (search.best.empty() || cost <= near_costs * search.all[search.best.front()].cost(search.price))
      grids.push_back(grid);
  if (!search.best.empty()) {
    const auto own = std::find(grids.begin(), grids.end(), search.all[search.best.front()].layout.grid);
    std::rotate(grids.begin(), own, own + 1);
  }
  return grids;
}

/// Adds what a search of one grid has found to the search of all.
void take_over(LayoutSearch& search, LayoutSearch&& found, const Coord& grid) {
  std::vector<int> known;
  for (int place = 0; place < static_cast<int>(search.all.size()); ++place)
    if (search.all[place].layout.grid == grid) known.push_back(place);
  for (LayoutCandidate& one : found.all) {
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](int place) { return search.all[place].layout == one.layout; });
    if (same == known.end()) search.all.push_back(std::move(one));
    else if (one.fate == Fate::simulated && search.all[*same].fate != Fate::simulated)
      search.all[*same] = std::move(one);
  }
}

/// Forwards of chunks in the steps of the layouts whose order a search has made.
std::int64_t passes_tried(const LayoutSearch& search, const Config& config) {
  std::int64_t passes = 0;
  for (const LayoutCandidate& one : search.all) {
    if (one.step == 0 && one.over.empty()) continue;
    const LayoutChoice& layout = one.layout;
    const int samples = layout.micro_batch > 0 ? layout.micro_batch : config.train.micro_batch;
    passes += std::int64_t{1} * layout.grid.pipeline * layout.chunks *
              (config.train.batch / layout.grid.data / samples);
  }
  return passes;
}

/// Searches of grids, each by itself: more cuts are tried there, and single blocks are chosen whose tapes are
/// kept.
class CloserLooks {
 public:
  CloserLooks(const Config& config, int ranks, const SearchFreedom& free, PricedBlocks& blocks)
      : config_(config), ranks_(ranks), free_(free), blocks_(blocks) {
    free_.pipeline = free_.data = free_.tensor = false;
  }

  /// Searches the grid of the best that is known, where other tapes may make much of it that is too large;
  /// the cost of what that finds, 0 if it is nothing.
  double look_early(LayoutSearch& search) {
    settle(search, config_, 1, blocks_);
    if (search.best.empty()) return 0;
    const LayoutCandidate& best = search.all[search.best.front()];
    const auto may_gain_much = [&](const LayoutCandidate& one) {
      return one.layout.grid == best.layout.grid && one.fate == Fate::too_large &&
             near_costs * one.least_cost(search.price) < best.cost(search.price);
    };
    if (std::none_of(search.all.begin(), search.all.end(), may_gain_much)) return 0;
    early_grid_ = best.layout.grid;
    early_ = look(search, early_grid_);
    return early_->best.empty() ? 0 : early_->all[early_->best.front()].cost(search.price);
  }

  /// Searches the promising grids, that of the best first.
  void look_at_promising(LayoutSearch& search, int wanted) {
    std::int64_t of_early = 0;
    if (early_) {
      of_early = passes_tried(*early_, config_);
      take_over(search, *std::move(early_), early_grid_);
      settle(search, config_, wanted, blocks_);
    }
    // Without a limit there are cuts alone to find, which a long search has bounded well.
    std::int64_t passes = config_.memory.device_limit > 0 ? 0 : passes_tried(search, config_);
    for (const Coord& grid : promising_grids(search)) {
      if (passes > many_passes) break;
      if (early_ && grid == early_grid_) {
        passes += of_early;
        continue;
      }
      LayoutSearch found = look(search, grid);
      passes += passes_tried(found, config_);
      take_over(search, std::move(found), grid);
      settle(search, config_, wanted, blocks_);
    }
  }

 private:
  LayoutSearch look(const LayoutSearch& search, const Coord& grid) {
    Config config = config_;
    config.grid.pipeline = grid.pipeline;
    config.grid.data = grid.data;
    config.grid.tensor = grid.tensor;
    const double known = search.best.empty() ? 0 : search.all[search.best.front()].cost(search.price);
    return search_once(config, ranks_, free_, 1, search.price, known, blocks_);
  }

  const Config& config_;
  int ranks_;
  SearchFreedom free_;
  PricedBlocks& blocks_;
  Coord early_grid_{};
  std::optional<LayoutSearch> early_;  ///< what a search of that grid has found
};

}  // namespace

LayoutSearch search_layouts(const Config& config, int ranks, const SearchFreedom& free, int wanted,
                            const StepPrice& price) {
  PricedBlocks blocks;
  return search_layouts(config, ranks, free, wanted, price, blocks);
}

LayoutSearch search_layouts(const Config& config, int ranks, const SearchFreedom& free, int wanted,
                            const StepPrice& price, PricedBlocks& blocks) {
  const bool has_grids = free.pipeline || free.data || free.tensor,
             has_more = free.cuts || (config.memory.device_limit > 0 && (free.recompute || free.swap)),
             looks_closer = has_grids && has_more;
  CloserLooks closer(config, ranks, free, blocks);
  CostElsewhere elsewhere;
  if (looks_closer) elsewhere = [&](LayoutSearch& so_far) { return closer.look_early(so_far); };
  LayoutSearch search = search_once(config, ranks, free, wanted, price, 0, blocks, elsewhere);
  if (looks_closer) closer.look_at_promising(search, wanted);
  return search;
}

}  // namespace mindpipe
