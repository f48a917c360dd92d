#include "program/causal/own_cuts.h"

#include <algorithm>
#include <limits>

#include "program/choice_parts.h"

namespace mindpipe {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Whether all subnets use a unit of a block.
bool has_shared_unit(const Outline& outline, int block) {
  for (const auto& units : outline.units_used[block])
    for (const int unit : units)
      if (outline.units[unit].shared) return true;
  return false;
}

}  // namespace

OwnCuts::OwnCuts(const Outline& outline)
    : outline_(outline), sums_(outline.all_blocks() + 1, 0), first_block_(outline.first_block) {
  if (!outline.own_cuts) return;
  for (int stage = 0; stage <= outline.stages; ++stage) narrow(stage);
  for (const Range& range : ranges_) {
    best_.emplace_back(range.most - range.least + 1, never);
    from_.emplace_back(range.most - range.least + 1, 0);
  }
}

/// A stage begins at its home, or as far before or behind as blocks of a neighbour go, with as much crossing
/// the cut, but not beyond a block that does not move: one that all subnets share, or have no choice of.
void OwnCuts::narrow(int stage) {
  const std::vector<int>& home = outline_.first_block;
  Range& range = ranges_.emplace_back(Range{home[stage], home[stage]});
  if (stage == 0 || stage == outline_.stages) return;
  const auto may_move = [&](int block, int cut) {
    return cut < outline_.all_blocks() && outline_.blocks[block].size() > 1 &&
           !has_shared_unit(outline_, block) && outline_.cuts[cut] == outline_.cuts[home[stage]];
  };
  while (range.least > home[stage - 1] && may_move(range.least - 1, range.least - 1)) --range.least;
  while (range.most < home[stage + 1] && may_move(range.most, range.most + 1)) ++range.most;
}

std::pair<int, int> OwnCuts::reach(int stage) const {
  if (!outline_.own_cuts) return {outline_.first_block[stage], outline_.first_block[stage + 1]};
  return {ranges_[stage].least, ranges_[stage + 1].most};
}

/// Finds where stages begin so that `total(before, stage, first, last)`, from the best of the stages before
/// and the blocks of one more, is least in the end.
template <class Total>
void OwnCuts::solve(const Total& total) {
  best_[0][0] = 0;
  for (std::size_t stage = 1; stage < ranges_.size(); ++stage) {
    const Range &before = ranges_[stage - 1], &here = ranges_[stage];
    for (int last = here.least; last <= here.most; ++last) {
      double& best = best_[stage][last - here.least] = never;
      for (int first = before.least; first <= std::min(before.most, last - 1); ++first) {
        const double all =
            total(best_[stage - 1][first - before.least], static_cast<int>(stage) - 1, first, last);
        if (all >= best) continue;
        best = all;
        from_[stage][last - here.least] = first;
      }
    }
  }
}

/// First as short a longest stage as there is, then the evenest such cut.
const std::vector<int>& OwnCuts::of(const std::vector<std::uint8_t>& choice) {
  if (!outline_.own_cuts) return first_block_;
  for (int block = 0; block < outline_.all_blocks(); ++block) {
    sums_[block + 1] = sums_[block];
    for_candidates(outline_, choice, block, [&](int candidate) {
      const BlockCost& cost = outline_.cost(block, candidate);
      sums_[block + 1] += cost.passes();
    });
  }
  solve([&](double before, int stage, int first, int last) {
    return std::max(before, cost(stage, first, last));
  });
  const double longest = best_.back()[0];
  solve([&](double before, int stage, int first, int last) {
    const double sum = cost(stage, first, last);
    return sum > longest ? never : before + sum * sum;
  });
  for (int stage = outline_.stages; stage > 0; --stage)
    first_block_[stage - 1] = from_[stage][first_block_[stage] - ranges_[stage].least];
  return first_block_;
}

}  // namespace mindpipe
