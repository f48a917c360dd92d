#include "plan/subnet_memory.h"

#include <algorithm>

#include "comm/reduction.h"
#include "config/config.h"
#include "core/sum_lists.h"
#include "program/choice_parts.h"
#include "program/clock/transfer.h"
#include "program/lists/stretch_channels.h"
#include "program/unit_bytes.h"
#include "state/loss_sums.h"
#include "state/shared_windows.h"
#include "state/unit_moves.h"

namespace mindpipe {

int most_candidates(const Outline& outline) {
  std::size_t most = 1;
  for (const auto& candidates : outline.blocks) most = std::max(most, candidates.size());
  return static_cast<int>(most);
}

namespace {

/// A stage on paper, with the units that live on a pipeline rank.
Stage stage_of(const Config& config, const RunPlan& plan, CostModel& costs, int rank) {
  return {config, make_layout(config, {}), costs.stage().context(), plan.ranges_of(rank),
          plan.reach_of(rank)};
}

/// A buffer for each channel of moves: to and from each rank that may run the same blocks.
void give_move_buffers(SubnetRooms& rooms, const Outline& outline, int stage, const std::vector<int>& units) {
  const std::vector<int> ranks = ranks_of_moves(outline, stage);
  if (ranks.empty()) return;
  std::int64_t bytes = 0;
  for (const int unit : units)
    if (!outline.units[unit].shared) bytes += outline.units[unit].moved;
  rooms.moves = 2 * static_cast<int>(ranks.size());
  rooms.move = static_cast<std::size_t>(std::min(bytes, outline.part_bytes));
}

}  // namespace

SubnetRooms rooms_of(const Config& config, const RunPlan& plan, CostModel& costs, int rank,
                     PassFootprint& passes) {
  const Outline& outline = plan.outline;
  const SubnetRules& rules = plan.subnets->paper.rules;
  const auto [home_first, home_last] = plan.ranges_of(rank).front();
  const auto [first, last] = plan.reach_of(rank).front();
  SubnetRooms rooms{.slots = rules.slots[rank], .slabs = rules.slabs[rank], .inputs = rules.admission};
  for (int block = first; block < last; ++block) {
    const bool is_choice = costs.model().blocks()[block].is_choice();
    const std::vector<BlockPart> parts = choice_parts(outline, block);
    for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
      const BlockCost* candidates = &outline.blocks[block][parts[part].first];
      std::size_t slab = 0, tensors = 0;
      int dearest = 0;
      for (int k = 0; k < parts[part].count; ++k) {
        if (candidates[k].saved > candidates[dearest].saved) dearest = k;
        for (const int unit : outline.units_used[block][parts[part].first + k]) {
          const Unit& of_model = *costs.model().units()[unit];
          if (!outline.units[unit].shared)
            slab = std::max(slab, aligned(of_model.gradients().bytes_of_use()));
          tensors = std::max(tensors, of_model.params().size());
        }
      }
      rooms.slab += slab;
      rooms.most_tensors += static_cast<std::int64_t>(tensors);
      if (is_choice) costs.passes().choose_part(block, part, dearest);
    }
  }
  rooms.tape = costs.passes().training_footprint(first, last).kept;
  for (int k = 0; k < most_candidates(outline); ++k) {
    for (int block = first; block < last; ++block) costs.passes().choose(block, k);
    const PassFootprint trained = costs.passes().training_footprint(first, last);
    passes.include(trained);
    rooms.tape = std::max(rooms.tape, trained.kept);
  }
  const Stage stage = stage_of(config, plan, costs, rank);
  give_move_buffers(rooms, outline, rank, stage.local_units());
  const Communicator& tensor = stage.context().tensor;
  const SumTree tensor_tree(tensor.logical(), tensor.size());
  passes.exchange = std::max({passes.exchange, Communicator::scalars_bytes(tensor_tree, rooms.most_tensors),
                              SharedWindows::exchange_bytes(stage)});
  const auto bytes_before = [&](int block, bool with_forward) {
    const BoundaryBytes& cut = outline.cuts[block];
    return static_cast<std::size_t>(with_forward ? cut.activation + cut.encoder_output
                                                 : cut.gradient + cut.encoder_output_gradient);
  };
  if (home_first > 0) rooms.backwards = bytes_before(home_first, false);
  if (home_last < outline.all_blocks()) {
    rooms.forwards = bytes_before(home_last, true);
    rooms.gradient = bytes_before(home_last, false);
  }
  return rooms;
}

std::vector<std::size_t> arriving_of_subnets(const Config& config, const RunPlan& plan, CostModel& costs,
                                             int rank) {
  const int data = plan.outline.data;
  const SumTree of_shards = data_tree(plan.outline), of_ranks(data, data);
  std::vector<std::size_t> arriving(data, 0);
  const Stage stage = stage_of(config, plan, costs, rank);
  for (const int index : stage.local_units()) {
    if (plan.outline.units[index].values == 0) continue;
    const Unit& unit = *costs.model().units()[index];
    const UnitCost& cost = plan.outline.units[index];
    const int parts = sum_over_data(plan.outline, index).parts;
    const auto cuts = share_edges(unit, data * parts);
    for (int piece = 0; piece < data * parts; ++piece) {
      const std::int64_t numbers = unit.flat_count() + 1;
      const std::int64_t bytes =
          cost.shared ? 8 * (numbers * (piece + 1) / (data * parts) - numbers * piece / (data * parts))
                      : 4 * (cuts[piece + 1] - cuts[piece]);
      std::size_t& most = arriving[owner_of_piece(piece, parts)];
      most = std::max(
          most, Exchange::scratch_bytes(cost.shared ? of_ranks : of_shards, static_cast<std::size_t>(bytes)));
    }
  }
  return arriving;
}

void add_subnets(BytesByClass& bytes, const Config& config, const RunPlan& plan, CostModel& costs, int rank) {
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
  const auto add = [&](MemoryClass kind, std::size_t count, std::size_t each) {
    at(kind) += static_cast<std::int64_t>(count * aligned(each));
  };
  const SubnetRooms& rooms = plan.subnets->rooms[rank];
  Stage stage = stage_of(config, plan, costs, rank);
  Optimizers optimizers;
  for (int unit : stage.local_units()) {
    optimizers[unit] = std::make_unique<UnitOptimizer>(stage.unit(unit), config.optimizer, 0, 1);
    at(MemoryClass::values) += plan.outline.units[unit].values;
    add(MemoryClass::optimizer, 1, optimizers[unit]->bytes());
    if (!stage.model().is_shared(unit)) continue;
    add(MemoryClass::values, 1, value_bytes(stage.unit(unit)));  // the second version
    add(MemoryClass::gradients, 1, stage.unit(unit).gradients().bytes());
  }
  add(MemoryClass::gradients, 1, SharedWindows::bytes(stage, plan.outline));
  add(MemoryClass::gradients, rooms.slabs, rooms.slab);
  add(MemoryClass::boundary, rooms.moves, rooms.move);
  if (rooms.moves > 0) add(MemoryClass::boundary, 1, UnitMoves::bytes(stage));
  add(MemoryClass::activations, rooms.slots, rooms.tape);
  add(MemoryClass::boundary, rooms.slots, rooms.gradient);
  add(MemoryClass::boundary, 2, rooms.forwards);
  add(MemoryClass::boundary, 2, rooms.backwards);
  add(MemoryClass::boundary, rooms.inputs,
      static_cast<std::size_t>(
          input_bytes(costs.model().fields_of(plan.reach_of(rank)), make_layout(config, {}))));
  if (stage.has_head())
    at(MemoryClass::boundary) +=
        static_cast<std::int64_t>(bytes_for({rooms.inputs * losses_shape(stage).count()}, DType::f32));
  at(MemoryClass::workspace) += static_cast<std::int64_t>(Decisions::bytes(
      Decisions::of_each(optimizers), stage.context().tensor.local_shards(), rooms.most_tensors));
}

}  // namespace mindpipe
