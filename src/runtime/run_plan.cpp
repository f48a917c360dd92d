#include <omp.h>

#include <algorithm>

#include "program/partition.h"
#include "runtime/worker.h"

namespace mindpipe {
namespace {

std::int64_t cost_of(const BlockCost& block) { return block.forward + block.backward; }

}  // namespace

std::int64_t input_bytes(const Config& config, const Layout& layout) {
  const std::int64_t m = layout.micro_batches();
  const Shape ids{m, layout.samples, layout.sequence};
  const bool source = config.model.kind == "translator";
  return static_cast<std::int64_t>(bytes_for(ids, DType::i32) * (source ? 3 : 2) + (source ? bytes_for({m, layout.samples}, DType::i32) : 0));
}

RunPlan make_run_plan(const Config& config) {
  const int stages = config.grid.pipeline, chunks = config.schedule.chunks;
  const Layout layout = make_layout(config, {});
  Measure measure(config, layout);
  RunPlan plan;
  plan.outline = measure.outline();
  plan.parameters = measure.model().parameters();
  plan.operations_per_token = measure.operations_per_token();
  Outline& outline = plan.outline;
  outline.stages = stages, outline.chunks = chunks;
  outline.micro_batches = layout.micro_batches(), outline.shards = layout.local_data_shards(), outline.data = layout.grid.data;
  outline.sharded_optimizer = config.train.zero > 0 && layout.grid.data > 1;
  outline.sharded_gradients = config.train.zero > 1 && layout.grid.data > 1;
  std::vector<std::int64_t> costs;
  for (const BlockCost& block : outline.blocks) costs.push_back(cost_of(block));
  outline.first_block = config.schedule.cuts.empty() ? balanced_cuts(costs, stages * chunks)
                                                      : manual_cuts(config.schedule.cuts, static_cast<int>(outline.blocks.size()), stages * chunks);
  plan.first_block = outline.first_block;
  Network network;
  network.message = network.data = network.grid = network.tensor = {2000, 100, -1};
  plan.step = make_program(outline, config.schedule.kind, network);

  for (int rank = 0; rank < stages; ++rank) {
    Measure::Room room;
    std::array<std::int64_t, memory_classes.size()> bytes{};
    const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
    std::vector<int> units;
    int first = static_cast<int>(outline.blocks.size()), last = 0;
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
      if (outline.rank_of(chunk) != rank) continue;
      const int from = outline.first_block[chunk], to = outline.first_block[chunk + 1];
      for (const Measure::Room& r : {measure.room(from, to), measure.evaluation_room(from, to)})
        room.kept = std::max(room.kept, r.kept), room.scratch = std::max(room.scratch, r.scratch);
      for (int b = from; b < to; ++b)
        for (int unit : measure.model().blocks()[b].units) units.push_back(unit);
      first = std::min(first, from), last = std::max(last, to);
    }
    // Evaluation goes through neighbouring chunks of one rank in one breath.
    if (stages == 1) room.kept = std::max(room.kept, measure.evaluation_room(first, last).kept);
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    const int parts = outline.sharded_optimizer ? layout.grid.data : 1;
    const RankMemory& placed = plan.step.placement.ranks[rank];
    for (std::int64_t slab : placed.slabs) at(MemoryClass::gradients) += slab;
    for (int u : units) {
      Unit& unit = *measure.model().units()[u];
      at(MemoryClass::values) += unit.value_bytes();
      std::size_t largest = 0, gradient = 0;  // of the parts; they differ by less than a chunk
      for (int part = 0; part < parts; ++part) {
        const UnitOptimizer optimizer(unit, config.optimizer, part, parts);
        largest = std::max(largest, optimizer.bytes()), gradient = std::max(gradient, optimizer.gradient_bytes());
      }
      at(MemoryClass::optimizer) += largest;
      const std::vector<char> apart = parts_apart(measure.model(), u, placed);
      at(MemoryClass::gradients) += placed.slabs.empty() ? unit.gradient_bytes() : gradient * static_cast<std::size_t>(std::count(apart.begin(), apart.end(), 1));
    }
    at(MemoryClass::activations) = static_cast<std::int64_t>(aligned(room.kept)) * placed.arenas;
    at(MemoryClass::workspace) = aligned(room.scratch);
    if (config.device.kind == "cpu")
      at(MemoryClass::workspace) += cpu_backend_workspace(config.device.threads > 0 ? config.device.threads : omp_get_max_threads(), config.device.instructions, compute_dtype(config));
    if (config.device.kind == "cuda") at(MemoryClass::workspace) += static_cast<std::int64_t>(gpu_workspace_bytes);
    for (const BoundaryBytes& b : placed.buffers) at(MemoryClass::boundary) += aligned(std::max(b.activation + b.memory, b.gradient + b.memory_gradient));
    at(MemoryClass::boundary) += input_bytes(config, layout) + bytes_for({layout.micro_batches(), layout.samples, layout.sequence}, DType::f32);
    plan.rooms.push_back(room);
    plan.memory.push_back(bytes);
  }
  return plan;
}

}  // namespace mindpipe
