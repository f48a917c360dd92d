#include "program/place_gradients.h"

#include <algorithm>
#include <limits>

namespace mindpipe {
namespace {

/// When the accumulators of a use are in use on one rank; places are entries of its list.
struct Life {
  UnitUse use;
  int first = -1;    ///< the first backward that adds to them
  int fed = -1;      ///< the last one
  int reduced = -1;  ///< their sum over data (its last part)
  int over = 0;      ///< passes behind this one may have the slab
  std::int64_t bytes = 0, share = 0;
};

/// The lives of all uses, in the order of their sums over data.
std::vector<Life> lives_of(const std::vector<Action>& list, const Outline& outline, int under_way) {
  std::map<int, int> first, fed;  // of each block
  std::vector<Life> lives;
  for (int index = 0; index < static_cast<int>(list.size()); ++index) {
    const Action& action = list[index];
    if (adds_to_gradients(action))
      for (int block = action.first; block < action.last; ++block) {
        first.try_emplace(block, index);
        fed[block] = index;
      }
    if (action.kind != ActionKind::reduce) continue;
    const UnitUse use{action.unit, action.first};
    if (lives.empty() || lives.back().use != use) {
      lives.push_back({use, first.at(use.block), fed.at(use.block), index, 0,
                       outline.accumulator_bytes(use.unit), outline.share_bytes(use.unit)});
    }
    lives.back().reduced = index;
  }
  const int count = static_cast<int>(lives.size());
  for (int k = 0; k < count; ++k)
    lives[k].over = under_way < count - k ? lives[k + under_way].fed : std::numeric_limits<int>::max();
  return lives;
}

using Slab = std::vector<const Life*>;  ///< who takes turns in it, in order

/// What it costs to let `next` into a slab: a place for the share that has to move out; -1 if they meet.
std::int64_t cost_of_joining(const Slab& slab, const Life& next) {
  const bool meets = std::any_of(slab.begin(), slab.end(), [&](const Life* there) {
    return next.first <= there->over && there->first <= next.over;
  });
  if (meets) return -1;
  return next.first > slab.back()->first ? slab.back()->share : next.share;
}

/// Largest first, so that a slab never grows; a slab of its own is what joining is weighed against.
std::vector<Slab> take_turns(const std::vector<Life>& lives) {
  std::vector<const Life*> by_size;
  for (const Life& life : lives) by_size.push_back(&life);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Life* a, const Life* b) { return a->bytes > b->bytes; });
  std::vector<Slab> slabs;
  for (const Life* life : by_size) {
    Slab* best = nullptr;
    std::int64_t least = life->bytes;
    for (Slab& slab : slabs)
      if (const std::int64_t cost = cost_of_joining(slab, *life); cost >= 0 && cost < least) {
        best = &slab;
        least = cost;
      }
    if (best == nullptr) best = &slabs.emplace_back();
    best->insert(std::upper_bound(best->begin(), best->end(), life,
                                  [](const Life* a, const Life* b) { return a->first < b->first; }),
                 life);
  }
  return slabs;
}

}  // namespace

void place_gradients(std::vector<Action>& list, const Outline& outline, int under_way, RankMemory& memory) {
  const std::vector<Life> lives = lives_of(list, outline, under_way);
  std::map<int, int> waits;  // a first backward, and the newest sum that it waits for; sums end in order
  for (const Slab& slab : take_turns(lives)) {
    const int number = static_cast<int>(memory.slabs.size());
    memory.slabs.push_back(0);
    for (std::size_t turn = 0; turn < slab.size(); ++turn) {
      memory.slabs.back() = std::max(memory.slabs.back(), slab[turn]->bytes);
      memory.gradients[slab[turn]->use] = {number, turn + 1 < slab.size()};
      if (turn == 0) continue;
      int& wait = waits.try_emplace(slab[turn]->first, -1).first->second;
      wait = std::max(wait, slab[turn - 1]->reduced);
    }
  }
  int newest = -1;
  for (const auto& [index, reduce] : waits) {
    if (reduce <= newest) continue;
    list[index].after.push_back(newest = reduce);
    std::sort(list[index].after.begin(), list[index].after.end());
  }
  int next_place = 0;
  std::map<UnitUse, int> places;
  for (Action& action : list) {
    if (action.kind != ActionKind::reduce) continue;
    const GradientPlace& place = memory.gradients.at({action.unit, action.first});
    action.slab = place.slab;
    if (!place.moves_out) continue;
    const auto [known, fresh] = places.try_emplace(UnitUse{action.unit, action.first}, next_place);
    if (fresh) ++next_place;
    action.apart = known->second;
  }
}

}  // namespace mindpipe
