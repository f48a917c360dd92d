#include <algorithm>
#include <limits>

#include "plan/cost_model.h"

namespace mindpipe {

/// What the candidates of a block's parts cost, one part after the other. Those of several parts add up: the
/// first part's are priced with the cheapest of the others, theirs are what they cost more than those.
std::vector<BlockCost> CostModel::costs_of_choice(int block) {
  const auto& parts = model().blocks()[block].choices;
  const auto each = [&](int part, const auto& see) {
    for (int candidate = 0; candidate < static_cast<int>(parts[part].units.size()); ++candidate) {
      choose_part(block, part, candidate);
      see(candidate, cost_of_block(block));
    }
  };
  choose(block, 0);
  std::vector<int> cheapest(parts.size(), 0);
  for (int part = 0; parts.size() > 1 && part < static_cast<int>(parts.size()); ++part) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each(part, [&](int candidate, const BlockCost& cost) {
      if (cost.forward + cost.backward >= least) return;
      least = cost.forward + cost.backward;
      cheapest[part] = candidate;
    });
    choose_part(block, part, cheapest[part]);
  }
  const BlockCost base = cost_of_block(block);
  std::vector<BlockCost> costs;
  for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
    each(part, [&](int, BlockCost cost) {
      if (part > 0) cost -= base;
      costs.push_back(cost);
    });
    choose_part(block, part, cheapest[part]);
  }
  return costs;
}

Outline CostModel::outline() {
  Outline outline;
  for (int u = 0; u < static_cast<int>(model().units().size()); ++u) {
    outline.units.push_back(cost_of(*model().units()[u]));
    outline.units.back().shared = model().is_shared(u);
  }
  for (int b = 0; b < static_cast<int>(model().blocks().size()); ++b) {
    const Model::Block& block = model().blocks()[b];
    if (block.is_choice()) {
      std::vector<BlockPart> parts;
      std::vector<int> units;
      for (const Model::Block::Choice& choice : block.choices) {
        parts.push_back(
            {choice.place, static_cast<int>(units.size()), static_cast<int>(choice.units.size())});
        units.insert(units.end(), choice.units.begin(), choice.units.end());
      }
      outline.add_choice(costs_of_choice(b), units, parts);
    } else {
      outline.add_block(cost_of_block(b), block.units);
    }
    outline.cuts.push_back(crossing(b));
  }
  if (model().has_choices()) outline.parts_of.resize(outline.blocks.size());
  return outline;
}

}  // namespace mindpipe
