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

  LayoutChoice in(LayoutChoice layout, const TapeRules& rules) const {
    std::vector<int> again, away;
    for (int block = 0; block < static_cast<int>(of.size()); ++block) {
      if (of[block] == TapeFate::again) again.push_back(block);
      if (of[block] == TapeFate::away) away.push_back(block);
    }
    if (rules.recomputes) layout.recompute = ChosenBlocks(again);
    if (rules.swaps) layout.swap = ChosenBlocks(away);
    return layout;
  }
};

Fates fates_of(const LayoutChoice& layout, const std::vector<char>& changeable) {
  Fates fates{.of = {}, .free = changeable};
  for (int block = 0; block < static_cast<int>(changeable.size()); ++block) {
    const bool is_free = changeable[block] != 0;
    fates.of.push_back(is_free && layout.swap.has(block)        ? TapeFate::away
                       : is_free && layout.recompute.has(block) ? TapeFate::again
                                                                : TapeFate::kept);
  }
  return fates;
}

/// Changes of a chunk's blocks: the edge of each run of one fate gets another one, or changes places with its
/// neighbour. `in_flight`: micro-batches of the chunk.
std::vector<Fates> changes_of(const Fates& now, int first, int last, const TapeRules& rules, int in_flight) {
  std::vector<Fates> changes;
  const auto is_edge = [&](int block, int beside) {
    return beside < first || beside >= last || now.free[beside] == 0 || now.of[beside] != now.of[block];
  };
  for (int block = first; block < last; ++block) {
    if (now.free[block] == 0 || (!is_edge(block, block - 1) && !is_edge(block, block + 1))) continue;
    for (const TapeFate fate : {TapeFate::kept, TapeFate::away, TapeFate::again}) {
      if (fate == now.of[block] || !rules.allow(fate, block, in_flight)) continue;
      changes.push_back(now);
      changes.back().of[block] = fate;
    }
    if (block + 1 == last || now.free[block + 1] == 0 || now.of[block] == now.of[block + 1] ||
        !rules.allow(now.of[block], block + 1, in_flight) ||
        !rules.allow(now.of[block + 1], block, in_flight))
      continue;
    changes.push_back(now);
    std::swap(changes.back().of[block], changes.back().of[block + 1]);
  }
  return changes;
}

}  // namespace

void improve_tapes(LayoutSearch& search, const Config& config, LayoutCandidate best,
                   const SearchFreedom& free, PricedBlocks& blocks) {
  Fates now = fates_of(best.layout, blocks.changeable(with_layout(config, best.layout)));
  const TapeRules rules{.recomputes = free.recompute,
                        .swaps = free.swap,
                        .given = {config.train.recompute, config.train.swap},
                        .hidden = 1};
  int left = most_changes;
  for (int chunk = 0, unchanged = 0; left > 0;) {
    const Config here = with_layout(config, best.layout);
    const std::vector<int> in_flight = blocks.in_flight(here), cut = blocks.laid_out(here).first_block;
    bool changed = false;
    for (const Fates& other : changes_of(now, cut[chunk], cut[chunk + 1], rules, in_flight[chunk])) {
      const LayoutChoice layout = other.in(best.layout, rules);
      const bool is_known = std::any_of(search.all.begin(), search.all.end(),
                                        [&](const LayoutCandidate& known) { return known.layout == layout; });
      if (is_known || left-- <= 0) continue;
      const Config known = with_layout(config, layout);
      const LayoutSketch sketch(known, blocks.laid_out(known));
      LayoutCandidate candidate = sketch.candidate(layout, sketch.first_block(layout));
      const double cost = best.cost(search.price);
      try_layout(config, candidate, search.price, cost, cost, blocks);
      search.all.push_back(candidate);
      changed = candidate.fate == LayoutCandidate::Fate::simulated && candidate.cost(search.price) < cost;
      if (!changed) continue;
      best = candidate;
      now = other;
      break;
    }
    unchanged = changed ? 0 : unchanged + 1;
    if (unchanged == static_cast<int>(in_flight.size())) return;
    if (!changed) chunk = (chunk + 1) % static_cast<int>(in_flight.size());
  }
}

}  // namespace mindpipe
