#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/config.h"
#include "program/choice_parts.h"

namespace mindpipe {
CostModel::CostModel(const Config& config, const Layout& layout)
    : train_(config.train),
      optimizer_(config.optimizer),
      schedule_(config.schedule.kind),
      layout_(layout),
      passes_(config, layout) {
  if (!config.device.profile.empty()) profile_ = read_profile(config.device.profile);
  passes_.allocate();
}

/// All passes of a step together stay below the 292 years that 64 bits can hold.
std::int64_t CostModel::nanoseconds(double seconds) const {
  const double passes = static_cast<double>(passes_.model().blocks().size()) * layout_.micro_batches();
  return std::llround(std::min(seconds * 1e9, 0x1p59 / passes));
}

UnitCost CostModel::cost_of(const Unit& unit) const {
  const std::int64_t gradients = unit.flat_count() * 4, accumulators = unit.gradients().bytes_of_use();
  UnitCost cost;
  cost.values = value_bytes(unit);
  cost.gradients = gradients;
  const auto cuts = share_edges(unit, layout_.grid.data);
  for (int share = 0; share < layout_.grid.data; ++share)
    cost.share = std::max(cost.share, 4 * (cuts[share + 1] - cuts[share]));
  cost.sequence_parts = accumulators - gradients * (1 + unit.gradients().levels());
  cost.state = gradients * (std::ssize(optimizer_.moments()) + (unit.dtype() == DType::bf16 ? 1 : 0));
  cost.tensors = static_cast<int>(unit.params().size());
  const bool in_shares = train_.zero > 0 && layout_.grid.data > 1;
  const int counters = row_of(schedule_).of_subnets ? 2 : 1;
  cost.moved = counters * std::int64_t{8} +
               (in_shares ? cost.share : gradients) * (1 + std::ssize(optimizer_.moments()));
  const double clears = profile_ ? profile_->clear : passes_.backend().device().bytes,
               updates = profile_ ? profile_->update : passes_.backend().device().bytes;
  std::int64_t written = 0;  // of one use
  for (int use = 0; passes_.backend().wants_many_rows() && use < unit.uses(); ++use)
    written += 4 * elements_of_products(unit, use) / unit.uses();
  cost.clear = nanoseconds(
      static_cast<double>(accumulators - gradients * unit.gradients().levels() - written) / clears);
  cost.update = nanoseconds(static_cast<double>(unit.flat_count()) * bytes_of_update / updates);
  return cost;
}

std::uint64_t CostModel::work_of(int block) {
  return passes_.pass(block, block + 1, passes_.weight_gradients(), false).work;
}

double CostModel::described_seconds(int block) {
  const PassOnPaper p = passes_.pass(block, block + 1, passes_.weight_gradients(), false);
  return p.forward + p.backward;
}

void CostModel::take_measured(PassOnPaper& p) {
  if (!profile_) return;
  const auto found = profile_->passes.find(p.work);
  if (found != profile_->passes.end()) {
    p.forward = found->second.forward;
    p.backward_input = found->second.input;
    p.backward_weight = found->second.weight;
    scattered_ += found->second.spread * (p.forward + p.backward_input + p.backward_weight);
  } else {
    for (double* seconds : {&p.forward, &p.backward_input, &p.backward_weight}) *seconds *= profile_->factor;
    estimated_ += p.forward + p.backward_input + p.backward_weight;
  }
  p.backward = p.backward_input + p.backward_weight;
  all_ += p.forward + p.backward;
}

BlockCost CostModel::cost_of_block(int block) {
  PassOnPaper p = passes_.pass(block, block + 1, passes_.weight_gradients(), false);
  take_measured(p);
  BlockCost cost;
  cost.forward = nanoseconds(p.forward);
  cost.backward = nanoseconds(p.backward);
  cost.backward_input = nanoseconds(p.backward_input);
  cost.backward_weight = nanoseconds(p.backward_weight);
  cost.forward_sums = p.forward_sums;
  cost.backward_sums = p.backward_sums;
  cost.saved = p.footprint.kept;
  cost.put_off = p.put_off;
  cost.workspace = p.footprint.scratch;
  if (passes_.weight_gradients() == Tape::WeightGradients::now) return cost;
  // A backward that is whole all the same copies no gradient. A profile has the halves alone.
  const PassOnPaper whole = passes_.pass(block, block + 1, Tape::WeightGradients::now, false);
  cost.split_only = cost.saved - static_cast<std::int64_t>(whole.footprint.kept);
  if (!profile_) cost.backward = nanoseconds(whole.backward);
  return cost;
}

/// What crosses the cut before a block. The gradient of an encoder's output is f32.
BoundaryBytes CostModel::crossing(int block) {
  const auto [activation, memory] = stage().before(block);
  const auto bytes = [](const Shape& shape, DType dtype) {
    return shape.rank == 0 ? 0 : static_cast<std::int64_t>(bytes_for(shape, dtype));
  };
  const DType dtype = stage().context().dtype;
  return {bytes(activation, dtype), bytes(memory, dtype), bytes(activation, dtype),
          bytes(memory, DType::f32)};
}

double CostModel::operations_of_block(int block) {
  const double before = passes_.backend().operations();
  passes_.pass(block, block + 1, Tape::WeightGradients::now, false);
  return passes_.backend().operations() - before;
}

std::vector<double> CostModel::operations_of_blocks() {
  std::vector<double> all(model().blocks().size());
  for (std::size_t b = 0; b < all.size(); ++b) all[b] = operations_of_block(static_cast<int>(b));
  return all;
}

/// What the candidates of a block's parts cost, one part after the other. Those of several parts add up: the
/// first part's are priced with the cheapest of the others, theirs are what they cost more than those.
std::vector<BlockCost> CostModel::costs_of_choice(int block) {
  const auto& parts = model().blocks()[block].choices;
  const auto each = [&](int part, const auto& see) {
    for (int candidate = 0; candidate < static_cast<int>(parts[part].units.size()); ++candidate) {
      passes_.choose_part(block, part, candidate);
      see(candidate, cost_of_block(block));
    }
  };
  passes_.choose(block, 0);
  std::vector<int> cheapest(parts.size(), 0);
  for (int part = 0; parts.size() > 1 && part < static_cast<int>(parts.size()); ++part) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    each(part, [&](int candidate, const BlockCost& cost) {
      if (cost.passes() >= least) return;
      least = cost.passes();
      cheapest[part] = candidate;
    });
    passes_.choose_part(block, part, cheapest[part]);
  }
  const BlockCost base = cost_of_block(block);
  std::vector<BlockCost> costs;
  for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
    each(part, [&](int, BlockCost cost) {
      if (part > 0) cost -= base;
      costs.push_back(cost);
    });
    passes_.choose_part(block, part, cheapest[part]);
  }
  return costs;
}

Outline CostModel::outline() {
  Outline outline;
  for (int u = 0; u < static_cast<int>(model().units().size()); ++u) {
    outline.units.push_back(cost_of(*model().units()[u]));
    outline.units.back().shared = model().is_shared(u);
  }
  for (int b = 0; b < static_cast<int>(model().blocks().size()); ++b) {
    const Model::Block& block = model().blocks()[b];
    if (block.is_choice()) {
      std::vector<BlockPart> parts;
      std::vector<int> units;
      for (const Model::Block::Choice& choice : block.choices) {
        parts.push_back(
            {choice.place, static_cast<int>(units.size()), static_cast<int>(choice.units.size())});
        units.insert(units.end(), choice.units.begin(), choice.units.end());
      }
      add_choice(outline, costs_of_choice(b), units, parts);
    } else {
      outline.add_block(cost_of_block(b), block.units);
    }
    outline.cuts.push_back(crossing(b));
  }
  if (model().has_choices()) outline.parts_of.resize(outline.blocks.size());
  for (const Model::Block& block : model().blocks()) outline.swapped.push_back(block.is_swapped ? 1 : 0);
  return outline;
}

}  // namespace mindpipe
