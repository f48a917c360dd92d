#include "plan/rank_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "comm/reduction.h"
#include "config/config.h"
#include "core/sum_lists.h"
#include "optim/unit_optimizer.h"
#include "plan/subnet_memory.h"
#include "program/state_slots.h"
#include "program/unit_bytes.h"
#include "state/gradient_updates.h"

namespace mindpipe {

namespace {

/// What the edges of a unit's shares follow from: its tensors' shards, in whole numbers.
std::vector<std::int64_t> shape_of(const Unit& unit) {
  std::vector<std::int64_t> shape{unit.flat_count(), static_cast<std::int64_t>(unit.gradients().dtype())};
  for (int param = 0; param < static_cast<int>(unit.params().size()); ++param)
    shape.insert(shape.end(), {unit.shard_shape(param).count(), unit.local_shards(param)});
  return shape;
}

}  // namespace

std::vector<std::size_t> arriving_bytes(const Config& config, const RunPlan& plan, CostModel& costs,
                                        int rank) {
  const int data = plan.outline.data;
  const SumTree tree = data_tree(plan.outline);
  std::vector<std::size_t> arriving(data, 0);
  if (plan.subnets && data > 1) return arriving_of_subnets(config, plan, costs, rank);
  if (data == 1 || !plan.trains_steps()) return arriving;
  std::set<std::pair<std::vector<std::int64_t>, int>> seen;
  for (const Action& action : plan.training.program.ranks[rank]) {
    if (action.kind != ActionKind::reduce || action.part > 0) continue;
    const Unit& unit = *costs.model().units()[action.unit];
    if (!seen.emplace(shape_of(unit), action.parts).second) continue;  // units of one shape are summed alike
    const auto cuts = share_edges(unit, data * action.parts);
    std::map<std::int64_t, std::size_t> scratch;  // most pieces are as long as each other
    for (int piece = 0; piece < data * action.parts; ++piece) {
      const auto [known, is_new] = scratch.try_emplace(cuts[piece + 1] - cuts[piece]);
      if (is_new)
        known->second = Exchange::scratch_bytes(
            tree, static_cast<std::size_t>(known->first) * bytes_of(unit.gradients().dtype()));
      std::size_t& most = arriving[owner_of_piece(piece, action.parts)];
      most = std::max(most, known->second);
    }
  }
  return arriving;
}

std::vector<TrainedBytes> trained_units(const Config& config, const RunPlan& plan, CostModel& costs,
                                        int rank) {
  const RankMemory& placed = plan.training.placement.ranks[rank];
  const int shares = plan.outline.sharded_optimizer ? plan.outline.data : 1;
  std::vector<TrainedBytes> all(plan.outline.data);
  std::vector<StateSlots> slots(plan.outline.data);
  for (const int unit : plan.outline.units_of_rank(rank)) {
    Unit& of_model = *costs.model().units()[unit];
    const std::vector<char> apart = shares_apart(costs.model(), unit, placed);
    const auto parts = std::count(apart.begin(), apart.end(), 1);
    const std::vector<std::int64_t> edges = share_edges(of_model, shares);
    std::map<std::int64_t, TrainedBytes> by_length;  // equally long shares take as much
    for (int data_rank = 0; data_rank < plan.outline.data; ++data_rank) {
      const int share = shares > 1 ? data_rank : 0;
      const auto [known, is_new] = by_length.try_emplace(edges[share + 1] - edges[share]);
      if (is_new) {
        const UnitOptimizer optimizer(of_model, config.optimizer, share, shares);
        known->second = {static_cast<std::int64_t>(placed.slabs.empty() ? of_model.gradients().bytes()
                                                                        : optimizer.gradient_bytes() * parts),
                         static_cast<std::int64_t>(optimizer.bytes())};
      }
      TrainedBytes& here = all[data_rank];
      here.gradients += known->second.gradients;
      (plan.outline.state_on_host ? here.on_host : here.optimizer) += known->second.optimizer;
      if (plan.outline.state_on_host) slots[data_rank].add(known->second.optimizer);
    }
  }
  for (int data_rank = 0; data_rank < plan.outline.data; ++data_rank)
    all[data_rank].optimizer += slots[data_rank].bytes();
  return all;
}

std::int64_t statistics_bytes(const RunPlan& plan, CostModel& costs, int rank) {
  std::size_t sum = 0;
  for (const auto& [first, last] : plan.ranges_of(rank))
    for (int block = first; block < last; ++block)
      if (const std::size_t some = costs.model().blocks()[block].layer->statistics_bytes(); some > 0)
        sum += aligned(some);
  return static_cast<std::int64_t>(sum);
}

}  // namespace mindpipe
