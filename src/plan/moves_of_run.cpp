#include "plan/moves_of_run.h"

#include <algorithm>

#include "config/config.h"
#include "core/text.h"
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

/// Counts the state and the gradient of a unit that comes to a rank.
void add_arriving(BytesByClass& bytes, const Outline& outline, int unit, const UnitOptimizer& share) {
  bytes[static_cast<int>(MemoryClass::values)] += outline.units[unit].values;
  bytes[static_cast<int>(MemoryClass::optimizer)] += static_cast<std::int64_t>(share.bytes());
  bytes[static_cast<int>(MemoryClass::gradients)] += static_cast<std::int64_t>(share.gradient_bytes());
}

/// What a rank has room for beside its own units in a moving step: those that come, and parts on their way.
BytesByClass room_for_moves(const Config& config, CostModel& costs, const Outline& outline, int rank,
                            int data) {
  BytesByClass bytes{};
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
  std::int64_t moving = 0;
  const auto travel = [&](int from, int to) {
    const std::vector<int> units = units_leaving(outline, from, to);
    if (units.empty()) return;
    std::int64_t all = 0;
    for (const int unit : units) {
      const UnitOptimizer share = share_of(config, costs, outline, unit, data);
      all += UnitMoves::bytes_of_step(share, config.optimizer);
      if (to == rank) add_arriving(bytes, outline, unit, share);
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

/// What a block that comes takes on a data rank, with the parts on their way; nothing of one that stays where
/// it is, since it shares a table.
BytesByClass room_for_block(const Config& config, CostModel& costs, const Outline& outline, int block,
                            int data) {
  BytesByClass bytes{};
  std::int64_t all = 0, moving = 0;
  for (const UnitUse& use : outline.uses_in(block, block + 1)) {
    if (outline.units[use.unit].blocks.size() > 1) return {};
    const UnitOptimizer share = share_of(config, costs, outline, use.unit, data);
    add_arriving(bytes, outline, use.unit, share);
    all += UnitMoves::bytes_of_step(share, config.optimizer);
    ++moving;
  }
  bytes[static_cast<int>(MemoryClass::boundary)] +=
      static_cast<std::int64_t>(aligned(std::min(all, outline.part_bytes))) +
      static_cast<std::int64_t>(bytes_for({moving}, DType::f64));
  return bytes;
}

RunPlan plan_step_between(const Config& config, const RunPlan& before, const std::vector<int>& next) {
  RunPlan plan = before;
  plan.outline = moving_step(before.outline, next, config.repartition.room);
  plan.training = make_program(plan.outline, config.schedule.kind, plan.network, plan.groups);
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

/// Refuses a run that has no memory for the blocks that may come.
void require_room(const Config& config, const RunPlan& first) {
  const std::int64_t limit = config.memory.device_limit;
  if (!fits(first, limit)) return require_within(first, config);
  const RunPlan roomy = with_room_to_move(config, first);
  if (fits(roomy, limit)) return;
  for (int stage = 0; stage < first.outline.stages; ++stage)
    MP_REQUIRE(total_of(roomy.most_memory(stage)) <= limit, Exit::out_of_memory,
               "memory: a rank of stage {} will need {}, {} of them for blocks that may come to it "
               "(repartition.every, repartition.room: {}), and memory.device_limit is {}; take a smaller "
               "repartition.room, or leave repartition out",
               stage, human_bytes(static_cast<double>(total_of(roomy.most_memory(stage)))),
               human_bytes(static_cast<double>(total_of(roomy.most_memory(stage)) -
                                               total_of(first.most_memory(stage)))),
               config.repartition.room, human_bytes(static_cast<double>(limit)));
}

}  // namespace

std::vector<PlannedMove> plan_moves(const Config& config, const RunPlan& present,
                                    const std::vector<CutAt>& at) {
  std::vector<PlannedMove> moves;
  moves.reserve(at.size());
  const RunPlan* before = &present;
  for (const auto& [step, cuts] : at) {
    const std::vector<int> next =
        manual_cuts(cuts, present.outline.all_blocks(), present.outline.all_chunks(), "repartition.at");
    if (step > config.train.steps) break;
    if (next == before->outline.first_block) continue;
    moves.push_back({step, plan_step_between(config, *before, next), plan_behind(config, present, cuts)});
    before = &moves.back().after;
  }
  return moves;
}

std::vector<PlannedMove> plan_moves(const Config& config, RunPlan& first) {
  if (!config.repartition.moves() || !first.trains_steps()) return {};
  moving_step(first.outline, first.outline.first_block, config.repartition.room);  // refuses who has none
  const MemoryConfig& limits = config.memory;
  std::vector<PlannedMove> moves = plan_moves(config, first, config.repartition.at);
  const auto fit = [&] {
    return (config.repartition.every == 0 || is_within(with_room_to_move(config, first), limits)) &&
           std::all_of(moves.begin(), moves.end(), [&](const PlannedMove& move) {
             return is_within(move.during, limits) && is_within(move.after, limits);
           });
  };
  if (first.copies_state && !fit()) {
    first.save_without_copy();
    for (PlannedMove& move : moves) {
      move.during.save_without_copy();
      move.after.save_without_copy();
    }
  }
  if (config.repartition.every > 0) require_room(config, first);
  for (const PlannedMove& move : moves) {
    require_within(move.during, config);
    require_within(move.after, config);
  }
  return moves;
}

RunPlan with_room_to_move(const Config& config, const RunPlan& plan) {
  RunPlan roomy = plan;
  CostModel costs(config, make_layout(config, {}));
  const Outline& outline = plan.outline;
  for (int data = 0; data < outline.data; ++data) {
    BytesByClass largest{};
    for (int block = 1; block + 1 < outline.all_blocks(); ++block) {  // each end stays on its stage
      const BytesByClass bytes = room_for_block(config, costs, outline, block, data);
      if (total_of(bytes) > total_of(largest)) largest = bytes;
    }
    for (int rank = 0; rank < outline.stages; ++rank) {
      const std::int64_t beside = (rank > 0 ? 1 : 0) + (rank + 1 < outline.stages ? 1 : 0),
                         blocks = beside * std::min(config.repartition.room, outline.all_blocks());
      BytesByClass& all = roomy.memory[rank][data];
      for (std::size_t kind = 0; kind < all.size(); ++kind) all[kind] += blocks * largest[kind];
    }
  }
  return roomy;
}

}  // namespace mindpipe
