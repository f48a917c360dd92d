#include "plan/improve_tapes.h"

#include <algorithm>

#include "plan/choose_tapes.h"
#include "plan/layout_trial.h"
#include "plan/priced_blocks.h"

namespace mindpipe {
namespace {

/// Layouts that are simulated at most.
constexpr int most_changes = 80;

/// What becomes of each block's tape; blocks for which nothing else can be done are not among `free`.
struct Fates {
  std::vector<TapeFate> of;
  std::vector<char> free;

  LayoutChoice in(LayoutChoice layout) const {
    std::vector<int> again, away;
    for (int block = 0; block < static_cast<int>(of.size()); ++block) {
      if (of[block] == TapeFate::again) again.push_back(block);
      if (of[block] == TapeFate::away) away.push_back(block);
    }
    layout.recompute = ChosenBlocks(again);
    layout.swap = ChosenBlocks(away);
    return layout;
  }
};

Fates fates_of(const LayoutChoice& layout, const Outline& kept, const Outline& again) {
  Fates fates;
  for (int block = 0; block < kept.all_blocks(); ++block) {
    fates.free.push_back(again.cost(block).backward > kept.cost(block).backward ? 1 : 0);
    const bool is_free = fates.free.back() != 0;
    fates.of.push_back(is_free && layout.swap.has(block)        ? TapeFate::away
                       : is_free && layout.recompute.has(block) ? TapeFate::again
                                                                : TapeFate::kept);
  }
  return fates;
}

/// Changes of a chunk's blocks: the edge of each run of one fate gets another one, or changes places with its
/// neighbour.
std::vector<Fates> changes_of(const Fates& now, int first, int last, const SearchFreedom& free) {
  std::vector<Fates> changes;
  const auto is_edge = [&](int block, int beside) {
    return beside < first || beside >= last || now.free[beside] == 0 || now.of[beside] != now.of[block];
  };
  for (int block = first; block < last; ++block) {
    if (now.free[block] == 0 || (!is_edge(block, block - 1) && !is_edge(block, block + 1))) continue;
    for (const TapeFate fate : {TapeFate::kept, TapeFate::away, TapeFate::again}) {
      const bool is_allowed = fate == TapeFate::kept || (fate == TapeFate::away ? free.swap : free.recompute);
      if (fate == now.of[block] || !is_allowed) continue;
      changes.push_back(now);
      changes.back().of[block] = fate;
    }
    if (block + 1 == last || now.free[block + 1] == 0 || now.of[block] == now.of[block + 1]) continue;
    changes.push_back(now);
    std::swap(changes.back().of[block], changes.back().of[block + 1]);
  }
  return changes;
}

}  // namespace

void improve_tapes(LayoutSearch& search, const Config& config, LayoutCandidate best,
                   const SearchFreedom& free, PricedBlocks& blocks) {
  Config kept = with_layout(config, best.layout), again = kept;
  kept.train.swap = kept.train.recompute = again.train.swap = WhichBlocks::none;
  again.train.recompute = WhichBlocks::block;
  const Outline without = blocks.laid_out(kept);
  Fates now = fates_of(best.layout, without, blocks.laid_out(again));
  int left = most_changes;
  for (bool changed = true; changed && left > 0;) {
    changed = false;
    const std::vector<int> cut = blocks.laid_out(with_layout(config, best.layout)).first_block;
    for (int chunk = 0; chunk < without.all_chunks() && !changed; ++chunk)
      for (const Fates& other : changes_of(now, cut[chunk], cut[chunk + 1], free)) {
        const LayoutChoice layout = other.in(best.layout);
        const bool is_known =
            std::any_of(search.all.begin(), search.all.end(),
                        [&](const LayoutCandidate& known) { return known.layout == layout; });
        if (is_known || left-- <= 0) continue;
        const Config known = with_layout(config, layout);
        const LayoutSketch sketch(known, blocks.laid_out(known));
        LayoutCandidate candidate = sketch.candidate(layout, sketch.first_block(layout));
        const double cost = best.cost(search.price);
        try_layout(config, candidate, search.price, cost, cost, blocks);
        search.all.push_back(candidate);
        if (candidate.fate != LayoutCandidate::Fate::simulated || candidate.cost(search.price) >= cost)
          continue;
        best = candidate;
        now = other;
        changed = true;
        break;
      }
  }
}

}  // namespace mindpipe
