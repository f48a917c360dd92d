#include "plan/roomy_cut.h"

#include <algorithm>
#include <limits>

namespace mindpipe {
namespace {

/// Buffers of a stage for what crosses its cuts: two that are filled in turn at each end, each way.
constexpr std::int64_t buffers_of_stage = 8;

/// What blocks take of a stage, added up from the first one of a run.
struct Run {
  std::int64_t bytes = 0;
  std::int64_t replayed = 0;  ///< what the second forward of one keeps more, at most
  std::int64_t workspace = 0, crosses = 0;
  std::int64_t total(int in_flight) const {
    return bytes + in_flight * replayed + workspace + buffers_of_stage * crosses;
  }
};

std::int64_t bytes_of_units(const Outline& outline, int block) {
  std::int64_t bytes = 0;
  for (const int unit : outline.units_used[block][0]) {
    const UnitCost& cost = outline.units[unit];
    bytes += cost.values + (outline.state_on_host ? 0 : outline.share_of_state(unit)) +
             (outline.sharded_gradients ? outline.share_bytes(unit) : outline.accumulator_bytes(unit));
  }
  return bytes;
}

void add(Run& run, const Outline& kept, int block, bool changes, int in_flight, const TapeRules& rules) {
  const BlockCost& cost = kept.cost(block);
  const std::int64_t enters = kept.cuts[block].activation,
                     leaves = block + 1 < kept.all_blocks() ? kept.cuts[block + 1].activation : 0;
  std::int64_t tapes = std::numeric_limits<std::int64_t>::max();
  const auto allows = [&](TapeFate fate) {
    return changes ? rules.allow(fate, block, in_flight) : fate == TapeFate::kept;
  };
  if (allows(TapeFate::kept)) tapes = in_flight * cost.saved;
  if (allows(TapeFate::away))
    tapes = std::min(tapes, slots_of_swapped(in_flight) * (cost.saved + enters - leaves));
  if (allows(TapeFate::again) && in_flight * enters < tapes) {
    tapes = in_flight * enters;
    run.replayed = std::max(run.replayed, cost.saved - enters);
  }
  run.bytes += bytes_of_units(kept, block) + tapes;
  run.workspace = std::max(run.workspace, cost.workspace);
  run.crosses = std::max({run.crosses, enters, leaves});
}

}  // namespace

std::optional<std::vector<int>> roomy_cut(const Outline& kept, const std::vector<char>& changeable,
                                          const std::vector<int>& in_flight, const TapeRules& rules,
                                          std::int64_t limit) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const int blocks = kept.all_blocks(), stages = kept.stages;
  // The time of the slowest stage where so many stages end before a block, and where the last one begins.
  std::vector<std::vector<std::int64_t>> slowest(stages + 1, std::vector<std::int64_t>(blocks + 1, never));
  std::vector<std::vector<int>> begin(stages + 1, std::vector<int>(blocks + 1, 0));
  slowest[0][0] = 0;
  for (int stage = 0; stage < stages; ++stage)
    for (int first = stage; first < blocks; ++first) {
      if (slowest[stage][first] == never) continue;
      Run run;
      std::int64_t time = 0;
      for (int last = first + 1; last <= blocks - (stages - 1 - stage); ++last) {
        add(run, kept, last - 1, changeable[last - 1] != 0, in_flight[stage], rules);
        time += kept.cost(last - 1).forward + kept.cost(last - 1).backward;
        if (run.total(in_flight[stage]) > limit) break;
        const std::int64_t worst = std::max(slowest[stage][first], kept.lasting(stage, time));
        if (worst >= slowest[stage + 1][last]) continue;
        slowest[stage + 1][last] = worst;
        begin[stage + 1][last] = first;
      }
    }
  if (slowest[stages][blocks] == never) return std::nullopt;
  std::vector<int> cut;
  for (int stage = stages, last = blocks; stage > 1; --stage) {
    last = begin[stage][last];
    cut.insert(cut.begin(), last);
  }
  return cut;
}

}  // namespace mindpipe
