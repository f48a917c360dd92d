#include "plan/choose_tapes.h"

#include <algorithm>

#include "plan/stage_tapes.h"

namespace mindpipe {
namespace {

/// The runs of blocks of a stage, one for each of its chunks.
std::vector<BlocksInFlight> runs_of(const Outline& outline, const std::vector<int>& in_flight, int stage) {
  std::vector<BlocksInFlight> runs;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == stage)
      runs.push_back({outline.first_block[chunk], outline.first_block[chunk + 1], in_flight[chunk]});
  return runs;
}

}  // namespace

bool TapeRules::allow(TapeFate fate, int block, int in_flight) const {
  if (!swaps && given.swap.has(block)) return fate == TapeFate::away;
  switch (fate) {
    case TapeFate::kept:
      return recomputes || !given.recompute.has(block);
    case TapeFate::again:
      return recomputes || given.recompute.has(block);
    case TapeFate::away:  // two slots are as much as two tapes
      return swaps && hidden != 0 && in_flight > slots_of_swapped(in_flight) &&
             (recomputes || !given.recompute.are_some() || !given.recompute.has(block));
  }
  return false;
}

std::vector<std::int64_t> bytes_of_tapes(const Outline& outline, const std::vector<int>& in_flight,
                                         const TapeChoice& choice) {
  std::vector<std::int64_t> bytes(outline.stages, 0);
  for (int stage = 0; stage < outline.stages; ++stage)
    for (const BlocksInFlight& run : runs_of(outline, in_flight, stage))
      bytes[stage] += bytes_of_run(outline, run, [&](int block) {
        return choice.swap.has(block)        ? TapeFate::away
               : choice.recompute.has(block) ? TapeFate::again
                                             : TapeFate::kept;
      });
  return bytes;
}

TapeChoice choice_of(const std::vector<TapeFate>& fates, const TapeRules& rules) {
  std::vector<int> recomputed, swapped;
  for (int block = 0; block < std::ssize(fates); ++block) {
    if (fates[block] == TapeFate::again) recomputed.push_back(block);
    if (fates[block] == TapeFate::away) swapped.push_back(block);
  }
  return {rules.recomputes ? ChosenBlocks(std::move(recomputed)) : rules.given.recompute,
          rules.swaps ? ChosenBlocks(std::move(swapped)) : rules.given.swap};
}

std::optional<TapeChoice> choose_tapes(const Outline& kept, const Outline& again,
                                       const std::vector<int>& in_flight,
                                       const std::vector<std::int64_t>& limits, const TapeRules& rules) {
  std::vector<TapeFate> fates(kept.all_blocks(), TapeFate::kept);
  for (int stage = 0; stage < kept.stages; ++stage) {
    const std::vector<BlocksInFlight> runs = runs_of(kept, in_flight, stage);
    const auto chosen = choose_stage_tapes(kept, again, stage, runs, limits[stage], rules);
    if (!chosen) return std::nullopt;
    auto next = chosen->fates.begin();
    for (const BlocksInFlight& run : runs) {
      std::copy_n(next, run.last - run.first, fates.begin() + run.first);
      next += run.last - run.first;
    }
  }
  return choice_of(fates, rules);
}

}  // namespace mindpipe
