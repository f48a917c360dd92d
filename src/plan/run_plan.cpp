#include "plan/run_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "config/config.h"
#include "core/bulk_parts.h"
#include "core/sum_lists.h"
#include "plan/lay_out.h"
#include "plan/network_on_paper.h"
#include "plan/operation_counts.h"
#include "plan/rank_memory.h"
#include "plan/set_prices.h"
#include "plan/step_bound.h"
#include "plan/step_within.h"
#include "plan/subnet_memory.h"
#include "program/causal/own_cuts.h"
#include "program/check/check_slab.h"
#include "program/check/tree_proof.h"
#include "program/partition.h"
#include "program/share_buffers.h"
#include "state/gradient_updates.h"
#include "state/loss_sums.h"
#include "state/state_copy.h"
#include "supernet/sampler.h"

namespace mindpipe {
namespace {

// A longer piece of a file takes no less time; a shorter one would be all latency.
constexpr std::size_t most_passing = std::size_t{4} << 20, least_passing = std::size_t{256} << 10;

// Batches that many networks are scored on are few and small; where they are pictures they may not be.
constexpr std::int64_t most_held = std::int64_t{64} << 20;

/// Whether some backwards of a chunk are in halves, or some are not.
bool has_backwards(const std::vector<Action>& actions, int chunk, bool in_halves) {
  return std::any_of(actions.begin(), actions.end(), [&](const Action& action) {
    return is_pass(action) && is_backward(action) && action.chunk == chunk && is_half(action) == in_halves;
  });
}

/// An evaluation has all of the slab, which it needs for one chunk at a time.
RankFootprint footprint_of(const RunPlan& plan, CostModel& costs, int rank) {
  const Outline& outline = plan.outline;
  const bool trains = plan.trains_steps();
  RankFootprint footprint;
  if (trains) footprint.slots = plan.training.placement.ranks[rank].arenas;
  std::size_t evaluation = 0;
  std::map<std::pair<int, bool>, TapeSizes> tapes;  // of chunk, and whether its backward is in halves
  std::map<int, std::size_t> segments;              // of swapped blocks
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    const int first = outline.first_block[chunk], last = outline.first_block[chunk + 1];
    for (int candidate = 0; candidate < most_candidates(outline); ++candidate) {
      for (int block = first; block < last; ++block) costs.passes().choose(block, candidate);
      const PassFootprint evaluated = costs.passes().evaluation_footprint(first, last);
      footprint.passes.include(evaluated);
      evaluation = std::max(evaluation, evaluated.kept);
    }
    for (const bool in_halves : {false, true}) {
      if (!trains || !has_backwards(plan.training.program.ranks[rank], chunk, in_halves)) continue;
      const PassFootprint trained = costs.passes().training_footprint(
          first, last, in_halves ? Tape::WeightGradients::later : Tape::WeightGradients::now);
      footprint.passes.include(trained);
      tapes[{chunk, in_halves}] = {aligned(trained.kept), aligned(trained.waiting)};
      for (const auto& [block, bytes] : trained.segments)
        segments[block] = std::max(segments[block], aligned(bytes));
    }
  }
  if (trains) {
    const std::vector<Action>& list = plan.training.program.ranks[rank];
    footprint.slab = place_tapes(list, [&](int chunk, bool in_halves) {
      return tapes.at({chunk, in_halves});
    });
    add_segments(footprint.slab, list, [&](int block) { return segments.at(block); });
    require_sound_slab(list, footprint.slab, rank);
  }
  footprint.slab.bytes = std::max(footprint.slab.bytes, evaluation);
  const auto include = [&](const std::vector<BoundaryBytes>& buffers) {
    footprint.buffers.resize(std::max(footprint.buffers.size(), buffers.size()), 0);
    for (std::size_t i = 0; i < buffers.size(); ++i)
      footprint.buffers[i] = std::max(footprint.buffers[i], static_cast<std::size_t>(bytes_of(buffers[i])));
  };
  include(plan.evaluation.placement.ranks[rank].buffers);
  if (trains) include(plan.training.placement.ranks[rank].buffers);
  return footprint;
}

ScalarBytes scalars_of(const Config& config, const Layout& layout, const RunPlan& plan, CostModel& costs,
                       int rank) {
  if (!plan.trains_steps()) return scalar_bytes(layout, {}, false);
  Optimizers optimizers;
  DecisionScope all;
  for (int u : plan.outline.units_of_rank(rank)) {
    optimizers[u] = std::make_unique<UnitOptimizer>(*costs.model().units()[u], config.optimizer, 0, 1);
    all.members.push_back({optimizers[u].get(), 0});
  }
  for (const auto& unit : costs.model().units()) all.tensors += std::ssize(unit->params());
  return scalar_bytes(layout, {{all_units, all}}, plan.outline.sharded_optimizer,
                      squares_size(config.train, config.device.kind, layout, costs.model(), optimizers));
}

/// What each data rank of a pipeline rank has of the copy of the state that is written while training goes
/// on; empty where nothing is.
std::vector<std::int64_t> copies_of(const Config& config, const Layout& layout, const RunPlan& plan,
                                    CostModel& costs, int rank) {
  const CheckpointConfig& saves = config.checkpoint;
  if (plan.purpose == Purpose::reading || !saves.is_periodic() || saves.background == Background::no ||
      saves.writer == CheckpointWriterKind::mpiio || !row_of(config.device.kind).computes)
    return {};
  std::vector<char> is_here(costs.model().units().size(), 0);
  for (int chunk = 0; chunk < plan.outline.all_chunks(); ++chunk)
    for (int unit = 0; unit < static_cast<int>(is_here.size()) && plan.outline.rank_of(chunk) == rank;
         ++unit) {
      const int first = costs.model().blocks_of(unit).front();
      if (first >= plan.outline.first_block[chunk] && first < plan.outline.first_block[chunk + 1])
        is_here[unit] = 1;
    }
  return copied_bytes(config.train, config.optimizer, layout, costs.model(), is_here);
}

/// Whether some rank needs more than the limit of a device only because its state is copied.
bool copies_too_much(const RunPlan& plan, const Config& config) {
  const std::int64_t limit = config.memory.device_limit;
  for (const auto& ranks : plan.memory)
    for (const BytesByClass& bytes : ranks)
      if (limit > 0 && !plan.copy_in_host && total_of(bytes) > limit) return true;
  return false;
}

/// All but what training keeps of units, and the copy of the state.
BytesByClass bytes_of_rank(const Config& config, const Layout& layout, const RunPlan& plan, CostModel& costs,
                           int rank, int data_rank) {
  BytesByClass bytes{};
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return bytes[static_cast<int>(kind)]; };
  const bool trains = plan.trains_steps();
  if (plan.subnets) add_subnets(bytes, config, plan, costs, rank);
  for (int unit : plan.outline.units_of_rank(rank))
    if (!plan.subnets) at(MemoryClass::values) += plan.outline.units[unit].values;
  at(MemoryClass::values) += statistics_bytes(plan, costs, rank);
  if (trains)
    for (std::int64_t slab : plan.training.placement.ranks[rank].slabs)
      at(MemoryClass::gradients) += static_cast<std::int64_t>(aligned(slab));
  const RankFootprint& footprint = plan.footprints[rank];
  at(MemoryClass::activations) += aligned(footprint.slab.bytes);
  at(MemoryClass::workspace) += static_cast<std::int64_t>(
      footprint.workspace(data_rank) + footprint.scalars.kept +
      (row_of(config.device.kind).memory == Memory::Kind::device ? gpu_workspace_bytes : 0));
  for (std::size_t buffer : footprint.buffers) at(MemoryClass::boundary) += aligned(buffer);
  at(MemoryClass::boundary) +=
      plan.held_batches *
          input_bytes(plan.blocks_may_move ? plan.fields : costs.model().fields_of(plan.reach_of(rank)),
                      layout) +
      static_cast<std::int64_t>(bytes_for(losses_shape(costs.stage()), DType::f32));
  return bytes;
}

/// The layout, whose tree of sums over tensor shards is proved: they lie inside passes, on no list.
Layout proved_layout(const Config& config) {
  const Layout layout = make_layout(config, {});
  require_tree(layout.tensor_shards, layout.grid.tensor);
  return layout;
}

/// Plans the forwards of a batch in the rooms of the step, and counts the memory of each rank.
void count_memory(RunPlan& plan, const Config& config, const Layout& layout, CostModel& costs) {
  const Outline& outline = plan.outline;
  Outline forward_only = outline;
  forward_only.training = false;
  plan.evaluation =
      plan_forwards(forward_only, plan.network, plan.trains_steps() ? &plan.training.placement : nullptr);
  plan.passing = most_passing;
  for (int rank = 0; rank < outline.stages; ++rank) {
    plan.footprints.push_back(footprint_of(plan, costs, rank));
    RankFootprint& footprint = plan.footprints.back();
    if (plan.subnets) plan.subnets->rooms.push_back(rooms_of(config, plan, costs, rank, footprint.passes));
    footprint.reduction = arriving_bytes(config, plan, costs, rank);
    footprint.scalars = scalars_of(config, layout, plan, costs, rank);
    // Besides a piece, a sum over a group works in an alignment for each of its ranks.
    const auto degree =
        static_cast<std::size_t>(std::max({outline.stages, outline.data, layout.grid.tensor}));
    footprint.passes.scratch = std::max(footprint.passes.scratch, least_passing + degree * alignment);
    plan.passing = std::min(plan.passing, footprint.passes.scratch / alignment * alignment);
    footprint.passes.exchange = std::max(footprint.passes.exchange, footprint.scalars.tensor_exchange);
    if (!row_of(config.device.kind).computes)
      footprint.passes.backend = {};  // no operation works in anything
    auto& memory = plan.memory.emplace_back();
    plan.host_memory.emplace_back(outline.data, 0);
    const std::vector<std::int64_t> copies = copies_of(config, layout, plan, costs, rank);
    const std::vector<TrainedBytes> trained = plan.trains_steps() ? trained_units(config, plan, costs, rank)
                                                                  : std::vector<TrainedBytes>(outline.data);
    std::map<std::size_t, BytesByClass>
        by_arrivals;  // data ranks differ in what arrives, and in their shares
    for (int d = 0; d < outline.data; ++d) {
      const auto [known, is_new] = by_arrivals.try_emplace(footprint.reduction[d]);
      if (is_new) known->second = bytes_of_rank(config, layout, plan, costs, rank, d);
      memory.push_back(known->second);
      memory.back()[static_cast<int>(MemoryClass::gradients)] += trained[d].gradients;
      memory.back()[static_cast<int>(MemoryClass::optimizer)] += trained[d].optimizer;
      plan.host_memory.back()[d] = trained[d].on_host + plan.segments_on_host(rank);
      if (!copies.empty()) memory.back()[static_cast<int>(MemoryClass::copy)] = aligned(copies[d]);
      plan.copies_state = !copies.empty();
    }
  }
  plan.copy_in_host = row_of(config.device.kind).memory == Memory::Kind::device;
  if (copies_too_much(plan, config)) plan.save_without_copy();
}

}  // namespace

RunPlan::RunPlan() = default;
RunPlan::RunPlan(const RunPlan&) = default;
RunPlan::RunPlan(RunPlan&&) noexcept = default;
RunPlan& RunPlan::operator=(const RunPlan&) = default;
RunPlan& RunPlan::operator=(RunPlan&&) noexcept = default;
RunPlan::~RunPlan() = default;

std::size_t RankFootprint::workspace(int data_rank) const {
  return aligned(passes.scratch) + aligned(passes.exchange) + aligned(passes.zeros) +
         parts_under_way * aligned(reduction[data_rank]) + passes.backend.total() +
         aligned(scalars.data_exchange) + aligned(scalars.pipeline_exchange);
}

std::int64_t total_of(const BytesByClass& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t RunPlan::save_without_copy() {
  std::int64_t most = 0;
  for (auto& ranks : memory)
    for (BytesByClass& bytes : ranks)
      most = std::max(most, std::exchange(bytes[static_cast<int>(MemoryClass::copy)], 0));
  copies_state = false;
  copy_left_out = most;
  return most;
}

std::vector<std::pair<int, int>> RunPlan::ranges_of(int pipeline_rank) const {
  std::vector<std::pair<int, int>> ranges;
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    if (outline.rank_of(chunk) == pipeline_rank)
      ranges.emplace_back(outline.first_block[chunk], outline.first_block[chunk + 1]);
  return ranges;
}

std::vector<std::pair<int, int>> RunPlan::reach_of(int pipeline_rank) const {
  if (!subnets || !outline.own_cuts) return ranges_of(pipeline_rank);
  return {OwnCuts(outline).reach(pipeline_rank)};
}

const BytesByClass& RunPlan::most_memory(int pipeline_rank) const {
  const auto& ranks = memory[pipeline_rank];
  return *std::max_element(ranks.begin(), ranks.end(), [](const BytesByClass& a, const BytesByClass& b) {
    return total_of(a) < total_of(b);
  });
}

std::int64_t input_bytes(const std::vector<Field>& fields, const Layout& layout) {
  std::size_t bytes = 0;
  for (const Field& field : fields)
    bytes += bytes_for(field.of(layout.micro_batches(), layout.samples), field.type);
  return static_cast<std::int64_t>(bytes);
}

std::int64_t calibrations_of(const Config& config, int data) {
  const bool calibrates =
      row_of(config.model.kind).trains_subnets && config.model.supernet.space.is_of_pictures();
  return calibrates ? std::int64_t{config.supernet.calibrate_batches} * data : 0;
}

std::vector<Field> fields_of(const Config& config) {
  return CostModel(config, make_layout(config, {})).model().fields();
}

std::int64_t parameters_of(const Config& config) {
  return CostModel(config, make_layout(config, {})).model().parameters();
}

std::optional<Model::Continuation> continuation_of(const Config& config) {
  return CostModel(config, make_layout(config, {})).model().continuation();
}

void require_grid(const Config& config) {
  const Layout layout = make_layout(config, {});
  CostModel costs(config, layout);
  require_groups(config.schedule.groups, config.grid.pipeline, layout.micro_batches());
  cuts_of(config, std::vector<std::int64_t>(costs.model().blocks().size(), 1));
}

RoomWishes wishes_of(const Config& config) {
  return {.order = order_of(config.schedule.kind),
          .admission = config.supernet.admission,
          .slots = config.supernet.slots,
          .window = config.supernet.window};
}

namespace {

/// What a model says of itself.
void count_model(RunPlan& plan, const Config& config, Model& model) {
  plan.parameters = model.parameters();
  plan.fields = model.fields();
  plan.counted = model.counted();
  plan.operations = operations_of(config);
  plan.formula = model.formula();
}

}  // namespace

RunPlan make_run_plan(const Config& config, Purpose purpose, std::span<const Subnet> subnets,
                      std::int64_t batches, const ChangeOnPaper& change, const KnownOrder& known,
                      const IsTooLong& is_too_long) {
  const int stages = config.grid.pipeline;
  const Layout layout = proved_layout(config);
  CostModel costs(config, layout);
  RunPlan plan;
  plan.purpose = purpose;
  if (purpose == Purpose::training && row_of(config.model.kind).trains_subnets) plan.subnets.emplace();
  plan.blocks_may_move = purpose == Purpose::training && config.repartition.moves();
  plan.outline = costs.outline();
  plan.known = costs.known();
  if (const auto prices = prices_of(config)) set_prices(plan.outline, *prices, stages);
  count_model(plan, config, costs.model());
  plan.held_batches = static_cast<int>(
      std::clamp<std::int64_t>(most_held / std::max<std::int64_t>(1, input_bytes(plan.fields, layout)), 1,
                               batches + calibrations_of(config, layout.grid.data)));
  // A step's batch is copied to the device beside the step before, into a room of its own.
  if (plan.trains_steps() && row_of(config.device.kind).memory == Memory::Kind::device)
    plan.held_batches = std::max(plan.held_batches, 2);
  lay_out(plan.outline, config);
  plan.network = network_on_paper(config);
  if (change) change(plan.outline, plan.network);
  set_calls(plan.network.calls, plan.outline);
  const Outline& outline = plan.outline;
  const Network& network = plan.network;
  if (plan.subnets) {
    plan.subnets->paper = subnets.empty()
                              ? choose_rooms(outline, network, wishes_of(config), first_subnets(config))
                              : choose_rooms(outline, network, wishes_of(config), subnets);
  } else if (plan.trains_steps()) {
    const auto count = [&](RunPlan& counted) { count_memory(counted, config, layout, costs); };
    plan_step_within(plan, config, known, count, is_too_long);
    return plan;
  }
  count_memory(plan, config, layout, costs);
  return plan;
}

}  // namespace mindpipe
