#include "app/plan/plan_moves.h"

#include <algorithm>

#include "config/config.h"
#include "core/text.h"
#include "plan/moves_of_run.h"
#include "program/moving_step.h"

namespace mindpipe {
namespace {

std::int64_t most_memory_of(const RunPlan& plan) {
  std::int64_t most = 0;
  for (int stage = 0; stage < plan.outline.stages; ++stage)
    most = std::max(most, total_of(plan.most_memory(stage)));
  return most;
}

/// Bytes of the states and gradients that leave the stage from which most do, on one data and tensor rank.
std::int64_t most_sent(const RunPlan& moving) {
  std::int64_t most = 0;
  for (const std::vector<Action>& list : moving.training.program.ranks) {
    std::int64_t sent = 0;
    for (const Action& action : list) {
      const bool hands_over = is_move(action) || (action.payload == Payload::unit_gradient &&
                                                  way_of(moving.outline, action.unit));
      if (hands_over && sends(action)) sent += action.bytes;
    }
    most = std::max(most, sent);
  }
  return most;
}

}  // namespace

std::string moving_steps_text(const Config& config, const RunPlan& first) {
  std::string text;
  if (config.repartition.every > 0 && first.trains_steps())
    text = fmt::format(
        "every {} steps the stages report how long they work, and blocks move where that makes steps "
        "shorter; "
        "with room for those that may come a rank takes {} at most\n",
        config.repartition.every,
        human_bytes(static_cast<double>(most_memory_of(with_room_to_move(config, first)))));
  std::int64_t before = first.training.expected.step;
  const auto seconds = [](std::int64_t ns) { return human_seconds(static_cast<double>(ns) * 1e-9); };
  RunPlan known = first;
  for (const PlannedMove& move : plan_moves(config, known)) {
    const std::int64_t during = move.during.training.expected.step, after = move.after.training.expected.step;
    text += fmt::format(
        "step {} moves {}: {} leave a rank, {} is the most that one has room for; it takes {} ({} of "
        "the steps before), and those behind it {}\n",
        move.step, moved_blocks(move.during.outline),
        human_bytes(static_cast<double>(most_sent(move.during))),
        human_bytes(static_cast<double>(most_memory_of(move.during))), seconds(during),
        signed_percent(
            static_cast<double>(during) / static_cast<double>(std::max<std::int64_t>(1, before)) - 1, 2),
        seconds(after));
    before = after;
  }
  return text.empty() ? "" : "\nblocks that change their stage (repartition)\n" + text;
}

}  // namespace mindpipe
