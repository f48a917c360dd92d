#include "plan/run_plan.h"

#include <algorithm>
#include <numeric>

#include "comm/reduction.h"
#include "plan/network_on_paper.h"
#include "program/partition.h"
#include "state/gradient_updates.h"

namespace mindpipe {
namespace {

// A longer piece of a file takes no less time; a shorter one would be all latency.
constexpr std::size_t most_passing = std::size_t{4} << 20, least_passing = std::size_t{256} << 10;

std::int64_t cost_of(const BlockCost& block) { return block.forward + block.backward; }

/// The units of a pipeline rank, in model order.
std::vector<int> units_of(const Outline& outline, const Model& model, int rank) {
  std::vector<int> units;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    for (int b = outline.first_block[chunk];
         outline.rank_of(chunk) == rank && b < outline.first_block[chunk + 1]; ++b)
      units.insert(units.end(), model.blocks()[b].units.begin(), model.blocks()[b].units.end());
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

/// A slot's tape is as large as the largest chunk that its list ever puts there; the first slot serves
/// evaluations too.
RankFootprint footprint_of(const RunPlan& plan, CostModel& measure, int rank) {
  const Outline& outline = plan.outline;
  RankFootprint room;
  room.tapes.resize(plan.step.placement.ranks[rank].arenas);
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    const int first = outline.first_block[chunk], last = outline.first_block[chunk + 1];
    const CostModel::Footprint trained = measure.room(first, last),
                               evaluated = measure.evaluation_footprint(first, last);
    room.passes.include(evaluated);
    room.tapes[0] = std::max(room.tapes[0], evaluated.kept);
    if (plan.purpose == Purpose::reading) continue;
    room.passes.include(trained);
    for (const Action& action : plan.step.program.ranks[rank])
      if (action.kind == ActionKind::forward && action.chunk == chunk)
        room.tapes[action.slot] = std::max(room.tapes[action.slot], trained.kept);
  }
  // Evaluation goes through neighbouring chunks of one rank in one breath.
  if (outline.stages == 1)
    room.tapes[0] = std::max(room.tapes[0],
                             measure.evaluation_footprint(0, static_cast<int>(outline.blocks.size())).kept);
  return room;
}

/// What arrives of one part of a sum over data, the largest of all that the list has, on each data rank.
std::vector<std::size_t> reduction_rooms(const RunPlan& plan, CostModel& measure, int rank) {
  const Outline& outline = plan.outline;
  std::vector<std::size_t> rooms(outline.data, 0);
  if (outline.data == 1) return rooms;
  for (const Action& action : plan.step.program.ranks[rank]) {
    if (action.kind != ActionKind::reduce || action.part > 0) continue;
    for (int block = action.first; block < action.last; ++block)
      for (int u : measure.model().blocks()[block].units) {
        const Unit& unit = *measure.model().units()[u];
        const auto cuts = part_cuts(unit, outline.data * action.parts);
        for (int d = 0; d < outline.data; ++d)
          for (int piece = d * action.parts; piece < (d + 1) * action.parts; ++piece)
            rooms[d] =
                std::max(rooms[d], Exchange::scratch_bytes(
                                       outline.data, static_cast<std::size_t>(cuts[piece + 1] - cuts[piece]) *
                                                         bytes_of(unit.gradient_dtype())));
      }
  }
  return rooms;
}

ScalarCounts scalars_of(const Config& config, const Layout& layout, const RunPlan& plan, CostModel& measure,
                        int rank) {
  std::int64_t chunks = 0;
  for (int u : units_of(plan.outline, measure.model(), rank))
    chunks += UnitOptimizer(*measure.model().units()[u], config.optimizer, 0, 1).chunks();
  return scalar_counts(layout, measure.model(), chunks, plan.outline.sharded_optimizer);
}

BytesByClass bytes_of_rank(const Config& config, const Layout& layout, const RunPlan& plan,
                           CostModel& measure, int rank, int data_rank) {
  BytesByClass bytes{};
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
  const int part = plan.outline.sharded_optimizer ? data_rank : 0,
            parts = plan.outline.sharded_optimizer ? plan.outline.data : 1;
  const RankMemory& placed = plan.step.placement.ranks[rank];
  for (std::int64_t slab : placed.slabs)
    at(MemoryClass::gradients) += static_cast<std::int64_t>(aligned(slab));
  for (int u : units_of(plan.outline, measure.model(), rank)) {
    Unit& unit = *measure.model().units()[u];
    at(MemoryClass::values) += unit.value_bytes();
    if (plan.purpose == Purpose::reading) continue;
    const UnitOptimizer optimizer(unit, config.optimizer, part, parts);
    const std::vector<char> apart = parts_apart(measure.model(), u, placed);
    at(MemoryClass::gradients) +=
        placed.slabs.empty() ? unit.gradient_bytes()
                             : optimizer.gradient_bytes() *
                                   static_cast<std::size_t>(std::count(apart.begin(), apart.end(), 1));
    at(MemoryClass::optimizer) += optimizer.bytes();
  }
  for (std::size_t tape : plan.rooms[rank].tapes) at(MemoryClass::activations) += aligned(tape);
  at(MemoryClass::workspace) =
      static_cast<std::int64_t>(plan.rooms[rank].workspace(data_rank) +
                                (config.device.kind == DeviceKind::cuda ? gpu_workspace_bytes : 0));
  if (plan.purpose == Purpose::training)
    at(MemoryClass::workspace) += static_cast<std::int64_t>(plan.rooms[rank].scalars.bytes());
  for (const BoundaryBytes& b : placed.buffers)
    at(MemoryClass::boundary) += aligned(std::max(b.activation + b.memory, b.gradient + b.memory_gradient));
  at(MemoryClass::boundary) +=
      input_bytes(config, layout) +
      bytes_for({layout.micro_batches(), layout.samples, layout.sequence}, DType::f32);
  return bytes;
}

}  // namespace

std::size_t RankFootprint::workspace(int data_rank) const {
  return aligned(passes.scratch) + aligned(passes.exchange) + aligned(passes.zeros) +
         Reductions::parts_ahead * aligned(reduction[data_rank]) + passes.backend.total() +
         aligned(scalars.data_exchange()) + aligned(scalars.pipeline_exchange());
}

std::int64_t total_of(const BytesByClass& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

const BytesByClass& RunPlan::most_memory(int pipeline_rank) const {
  const auto& ranks = memory[pipeline_rank];
  return *std::max_element(ranks.begin(), ranks.end(), [](const BytesByClass& a, const BytesByClass& b) {
    return total_of(a) < total_of(b);
  });
}

std::int64_t input_bytes(const Config& config, const Layout& layout) {
  const std::int64_t m = layout.micro_batches();
  const Shape ids{m, layout.samples, layout.sequence};
  const bool source = row_of(config.model.kind).has_source;
  return static_cast<std::int64_t>(bytes_for(ids, DType::i32) * (source ? 3 : 2) +
                                   (source ? bytes_for({m, layout.samples}, DType::i32) : 0));
}

namespace {

void require_below(const BytesByClass& bytes, int stage, std::int64_t limit, const char* name_of_limit) {
  const std::int64_t total = total_of(bytes);
  MP_REQUIRE(limit == 0 || total <= limit, Exit::out_of_memory,
             "memory: a rank of stage {} will need {:.1f} MiB, and {} is {:.1f} MiB; take a smaller "
             "train.micro_batch, "
             "train.recompute: block, or more stages. Predicted:\n{}",
             stage, static_cast<double>(total) / 1048576.0, name_of_limit,
             static_cast<double>(limit) / 1048576.0, ledger_of(bytes));
}

}  // namespace

void require_fit(const RunPlan& plan, std::int64_t limit) {
  for (int stage = 0; stage < static_cast<int>(plan.memory.size()); ++stage)
    require_below(plan.most_memory(stage), stage, limit, "memory.device_limit");
}

void require_fit_here(const RunPlan& plan, const std::vector<Coord>& ranks, const MemoryLimit& here) {
  std::int64_t together = 0;
  for (const Coord& rank : ranks) {
    require_below(plan.memory_of(rank), rank.pipeline, here.bytes, here.name.c_str());
    together += total_of(plan.memory_of(rank));
  }
  MP_REQUIRE(here.bytes == 0 || together <= here.bytes, Exit::out_of_memory,
             "memory: the {} ranks on this machine will need {:.1f} MiB together, and {} is {:.1f} MiB; "
             "start fewer of them on one "
             "machine, or take a smaller train.micro_batch or train.recompute: block",
             ranks.size(), static_cast<double>(together) / 1048576.0, here.name,
             static_cast<double>(here.bytes) / 1048576.0);
}

namespace {

std::vector<int> cuts_of(const Config& config, const std::vector<std::int64_t>& costs) {
  const int chunks = config.grid.pipeline * config.schedule.chunks;
  return config.schedule.cuts.empty()
             ? balanced_cuts(costs, chunks)
             : manual_cuts(config.schedule.cuts, static_cast<int>(costs.size()), chunks);
}

/// What reads passes forward through one tape, whose tensors it sends: of a step's memory that is all it
/// needs.
void forget_step(RunPlan& plan) {
  for (RankMemory& placed : plan.step.placement.ranks) {
    placed.arenas = 1;
    placed.buffers.clear(), placed.slabs.clear(), placed.gradients.clear();
  }
}

}  // namespace

void require_grid(const Config& config) {
  CostModel measure(config, make_layout(config, {}));
  cuts_of(config, std::vector<std::int64_t>(measure.model().blocks().size(), 1));
}

RunPlan make_run_plan(const Config& config, Purpose purpose) {
  const int stages = config.grid.pipeline, chunks = config.schedule.chunks;
  const Layout layout = make_layout(config, {});
  CostModel measure(config, layout);
  RunPlan plan;
  plan.purpose = purpose;
  plan.outline = measure.outline();
  plan.parameters = measure.model().parameters();
  plan.operations_per_token = measure.operations_per_token();
  Outline& outline = plan.outline;
  outline.stages = stages, outline.chunks = chunks;
  outline.micro_batches = layout.micro_batches(), outline.shards = layout.local_data_shards(),
  outline.data = layout.grid.data;
  outline.sharded_optimizer = config.train.zero > 0 && layout.grid.data > 1;
  outline.sharded_gradients = config.train.zero > 1 && layout.grid.data > 1;
  std::vector<std::int64_t> costs;
  for (const BlockCost& block : outline.blocks) costs.push_back(cost_of(block));
  outline.first_block = cuts_of(config, costs);
  plan.first_block = outline.first_block;
  plan.step = make_program(outline, config.schedule.kind, network_on_paper(config));
  if (purpose == Purpose::reading) forget_step(plan);

  plan.passing = most_passing;
  for (int rank = 0; rank < stages; ++rank) {
    plan.rooms.push_back(footprint_of(plan, measure, rank));
    RankFootprint& room = plan.rooms.back();
    room.reduction = reduction_rooms(plan, measure, rank);
    room.scalars = scalars_of(config, layout, plan, measure, rank);
    // Besides a piece, a sum over a group works in an alignment for each of its ranks.
    const auto degree = static_cast<std::size_t>(std::max({stages, outline.data, layout.grid.tensor}));
    room.passes.scratch = std::max(room.passes.scratch, least_passing + degree * alignment);
    plan.passing = std::min(plan.passing, room.passes.scratch / alignment * alignment);
    room.passes.exchange = std::max(room.passes.exchange, room.scalars.tensor_exchange());
    if (config.device.kind == DeviceKind::emulated)
      room.passes.backend = {};  // no operation works in anything
    auto& memory = plan.memory.emplace_back();
    for (int d = 0; d < outline.data; ++d)
      memory.push_back(bytes_of_rank(config, layout, plan, measure, rank, d));
  }
  return plan;
}

}  // namespace mindpipe
