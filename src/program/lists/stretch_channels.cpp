#include "program/lists/stretch_channels.h"

#include <algorithm>

#include "program/causal/own_cuts.h"

namespace mindpipe {
namespace {

/// Whether a unit of a block lives where its last user ran.
bool has_units_that_move(const Outline& outline, int block) {
  for (const auto& units : outline.units_used[block])
    for (const int unit : units)
      if (!outline.units[unit].shared && outline.units[unit].values > 0) return true;
  return false;
}

/// What may cross cuts [first, last] between a rank and the next one.
void add_crossings(std::vector<StretchChannel>& channels, const Outline& outline, int before, int first,
                   int last) {
  const int behind = before + 1;
  for (int cut = first; cut <= last; ++cut)
    for (const bool with_forward : {true, false})
      for (const auto& [payload, bytes] : payloads_of(outline.cuts[cut], with_forward))
        if (bytes > 0)
          channels.push_back(with_forward ? StretchChannel{before, behind, payload}
                                          : StretchChannel{behind, before, payload});
}

std::vector<StretchChannel> each_once(std::vector<StretchChannel> channels) {
  std::sort(channels.begin(), channels.end());
  channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
  return channels;
}

}  // namespace

std::vector<int> ranks_of_moves(const Outline& outline, int rank) {
  if (!outline.has_moves()) return {};
  const OwnCuts cuts(outline);
  const auto [first, last] = cuts.reach(outline.stage_of_rank(rank));
  std::vector<int> ranks;
  for (int other = 0; other < outline.ranks(); ++other) {
    const auto [other_first, other_last] = cuts.reach(outline.stage_of_rank(other));
    for (int block = std::max(first, other_first); block < std::min(last, other_last); ++block) {
      if (other == rank || !has_units_that_move(outline, block)) continue;
      ranks.push_back(other);
      break;
    }
  }
  return ranks;
}

std::vector<StretchChannel> channels_of_stretches(const Outline& outline) {
  std::vector<StretchChannel> channels;
  const OwnCuts cuts(outline);
  for (int lane = 0; lane < outline.lanes; ++lane)
    for (int stage = 0; stage + 1 < outline.stages; ++stage)
      add_crossings(channels, outline, lane * outline.stages + stage, cuts.reach(stage + 1).first,
                    cuts.reach(stage).second);
  for (int unit = 0; unit < static_cast<int>(outline.units.size()); ++unit) {
    if (!outline.units[unit].shared) continue;
    const std::vector<int> ranks = outline.ranks_of(unit);
    for (const int from : ranks)
      for (const int to : ranks)
        if (from != to) channels.push_back({from, to, Payload::unit_gradient});
  }
  for (int from = 0; from < outline.ranks(); ++from)
    for (const int to : ranks_of_moves(outline, from)) channels.push_back({from, to, Payload::unit_state});
  return each_once(std::move(channels));
}

std::vector<StretchChannel> channels_of_moving_steps(const Outline& outline) {
  std::vector<StretchChannel> channels;
  for (int stage = 0; stage + 1 < outline.stages; ++stage) {
    add_crossings(channels, outline, stage, 1, outline.all_blocks() - 1);
    for (const Payload payload : {Payload::unit_gradient, Payload::unit_state}) {
      channels.push_back({stage, stage + 1, payload});
      channels.push_back({stage + 1, stage, payload});
    }
  }
  return each_once(std::move(channels));
}

}  // namespace mindpipe
