#pragma once
#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/check.h"
#include "plan/run_plan.h"
#include "program/moving_step.h"

namespace mindpipe {

/// A boundary, by the stage before it, and whether it goes to later blocks.
using BoundaryWay = std::pair<int, bool>;

/// A step that moves boundaries of an outline by a block each, by lot; none where that is refused.
inline std::optional<Outline> drawn_move(const Outline& here, std::mt19937& random) {
  std::vector<int> next = here.first_block;
  for (int stage = 1; stage < here.stages; ++stage) next[stage] += static_cast<int>(random() % 3) - 1;
  if (!std::is_sorted(next.begin(), next.end(), std::less_equal<>()) || next == here.first_block)
    return std::nullopt;
  try {
    return moving_step(here, next, 1);
  } catch (const Error&) {  // a table that is shared, or a block that would go on to a third stage
    return std::nullopt;
  }
}

/// Lets a run move blocks in every `every`-th of so many steps, by lot. Gives back which boundaries went
/// which way.
inline std::set<BoundaryWay> draw_moves(Config& config, unsigned seed, int every, int steps) {
  std::mt19937 random(seed);
  std::set<BoundaryWay> ways;
  Outline here = make_run_plan(config).outline;
  for (int step = every; step < steps; step += every) {
    std::optional<Outline> moving;
    for (int tries = 0; tries < 100 && !moving; ++tries) moving = drawn_move(here, random);
    if (!moving) continue;
    const std::vector<int>& next = moving->next_first_block;
    for (int stage = 1; stage < here.stages; ++stage)
      if (next[stage] != here.first_block[stage])
        ways.emplace(stage - 1, next[stage] > here.first_block[stage]);
    config.repartition.at.push_back({step, {next.begin() + 1, next.end() - 1}});
    here = after_move(*moving);
  }
  return ways;
}

}  // namespace mindpipe
