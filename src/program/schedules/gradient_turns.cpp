#include "program/schedules/gradient_turns.h"

#include <algorithm>
#include <limits>

#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

/// A life, and what its accumulators and this rank's share of their sum take.
struct Tenant : GradientLife {
  int sum = 0;   ///< which sum of the rank it is
  int over = 0;  ///< passes behind this one may have the slab
  std::int64_t bytes = 0, share = 0;
};

using Slab = std::vector<const Tenant*>;  ///< who takes turns in it, in order

/// What it costs to let `next` into a slab: a place for the share that has to move out; -1 if they meet.
std::int64_t cost_of_joining(const Slab& slab, const Tenant& next) {
  const bool meets = std::any_of(slab.begin(), slab.end(), [&](const Tenant* there) {
    return next.first <= there->over && there->first <= next.over;
  });
  if (meets) return -1;
  return next.first > slab.back()->first ? slab.back()->share : next.share;
}

/// Largest first, so that a slab never grows; a slab of its own is what joining is weighed against.
std::vector<Slab> pack(const std::vector<Tenant>& tenants) {
  std::vector<const Tenant*> by_size;
  for (const Tenant& tenant : tenants) by_size.push_back(&tenant);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Tenant* a, const Tenant* b) { return a->bytes > b->bytes; });
  std::vector<Slab> slabs;
  for (const Tenant* tenant : by_size) {
    Slab* best = nullptr;
    std::int64_t least = tenant->bytes;
    for (Slab& slab : slabs)
      if (const std::int64_t cost = cost_of_joining(slab, *tenant); cost >= 0 && cost < least) {
        best = &slab;
        least = cost;
      }
    if (best == nullptr) best = &slabs.emplace_back();
    best->insert(std::upper_bound(best->begin(), best->end(), tenant,
                                  [](const Tenant* a, const Tenant* b) { return a->first < b->first; }),
                 tenant);
  }
  return slabs;
}

}  // namespace

GradientTurns take_turns(const std::vector<GradientLife>& lives, const Outline& outline, int under_way) {
  const int count = static_cast<int>(lives.size());
  std::vector<Tenant> tenants;
  for (int sum = 0; sum < count; ++sum) {
    const int unit = lives[sum].use.unit;
    tenants.push_back({lives[sum], sum,
                       under_way < count - sum ? lives[sum + under_way].fed : std::numeric_limits<int>::max(),
                       accumulator_bytes(outline, unit), share_bytes(outline, unit)});
  }
  GradientTurns turns;
  std::map<int, int> waits;  // a first backward, and the newest sum that it waits for; sums end in order
  for (const Slab& slab : pack(tenants)) {
    const int number = static_cast<int>(turns.slabs.size());
    turns.slabs.push_back(0);
    for (std::size_t turn = 0; turn < slab.size(); ++turn) {
      turns.slabs.back() = std::max(turns.slabs.back(), slab[turn]->bytes);
      turns.places[slab[turn]->use] = {number, turn + 1 < slab.size()};
      if (turn == 0) continue;
      int& sums = waits[slab[turn]->first];
      sums = std::max(sums, slab[turn - 1]->sum + 1);
    }
  }
  for (const auto& [pass, sums] : waits) turns.waits.push_back({pass, sums});
  return turns;
}

}  // namespace mindpipe
