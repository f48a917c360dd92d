#include "plan/moves_of_run.h"

#include <algorithm>
#include <utility>

#include "optim/unit_optimizer.h"
#include "plan/cost_model.h"
#include "plan/memory_limits.h"
#include "program/clock/transfer.h"
#include "program/moving_step.h"
#include "program/partition.h"
#include "state/unit_moves.h"

namespace mindpipe {
namespace {

/// What data rank `data` has of a unit's state and gradient on paper.
UnitOptimizer share_of(const Config& config, CostModel& costs, const Outline& outline, int unit, int data) {
  return {*costs.model().units()[unit], config.optimizer, outline.sharded_optimizer ? data : 0,
          outline.sharded_optimizer ? outline.data : 1};
}

/// What a rank has room for beside its own units in a moving step: those that come, and parts on their way.
BytesByClass room_for_moves(const Config& config, CostModel& costs, const Outline& outline, int rank,
                            int data) {
  BytesByClass bytes{};
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
  std::int64_t moving = 0;
  const auto travel = [&](int from, int to) {
    const std::vector<int> units = outline.units_leaving(from, to);
    if (units.empty()) return;
    std::int64_t all = 0;
    for (const int unit : units) {
      const UnitOptimizer share = share_of(config, costs, outline, unit, data);
      all += UnitMoves::bytes_of_step(share, config.optimizer);
      if (to != rank) continue;
      at(MemoryClass::values) += outline.units[unit].values;
      at(MemoryClass::optimizer) += static_cast<std::int64_t>(share.bytes());
      at(MemoryClass::gradients) += static_cast<std::int64_t>(share.gradient_bytes());
    }
    moving += std::ssize(units);
    const std::int64_t parts = move_of(outline, units).parts;
    at(MemoryClass::boundary) += static_cast<std::int64_t>(aligned((all + parts - 1) / parts));
  };
  for (int other = 0; other < outline.stages; ++other) {
    travel(rank, other);
    travel(other, rank);
  }
  at(MemoryClass::boundary) += static_cast<std::int64_t>(bytes_for({moving}, DType::f64));
  return bytes;
}

RunPlan plan_step_between(const Config& config, const RunPlan& before, const std::vector<int>& next) {
  RunPlan plan = before;
  plan.outline = moving_step(before.outline, next, config.repartition.room);
  plan.training = make_program(plan.outline, config.schedule.kind, plan.network, 0, plan.groups);
  CostModel costs(config, make_layout(config, {}));
  for (int rank = 0; rank < plan.outline.stages; ++rank)
    for (int data = 0; data < plan.outline.data; ++data) {
      const BytesByClass more = room_for_moves(config, costs, plan.outline, rank, data);
      BytesByClass& all = plan.memory[rank][data];
      std::transform(all.begin(), all.end(), more.begin(), all.begin(), std::plus<>());
    }
  return plan;
}

RunPlan plan_behind(Config config, const RunPlan& first, const std::vector<int>& cuts) {
  config.schedule.cuts = cuts;
  RunPlan plan = make_run_plan(config, first.purpose);
  if (!first.copies_state) plan.save_without_copy();
  return plan;
}

}  // namespace

std::vector<PlannedMove> plan_moves(const Config& config, const RunPlan& first) {
  std::vector<PlannedMove> moves;
  if (!config.repartition.moves() || !first.trains_steps()) return moves;
  moving_step(first.outline, first.outline.first_block, config.repartition.room);  // refuses who has none
  moves.reserve(config.repartition.at.size());
  const RunPlan* before = &first;
  for (const auto& [step, cuts] : config.repartition.at) {
    const std::vector<int> next =
        manual_cuts(cuts, first.outline.all_blocks(), first.outline.all_chunks(), "repartition.at");
    if (next == before->outline.first_block) continue;
    PlannedMove& move =
        moves.emplace_back(step, plan_step_between(config, *before, next), plan_behind(config, first, cuts));
    require_fit(move.during, config.memory.device_limit);
    require_fit(move.after, config.memory.device_limit);
    before = &move.after;
  }
  return moves;
}

}  // namespace mindpipe
