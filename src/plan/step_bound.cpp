#include "plan/step_bound.h"

#include <algorithm>

namespace mindpipe {
namespace {

/// The part of a unit's state that one data rank has at least.
std::int64_t least_share(const Outline& outline, std::int64_t whole) {
  return outline.sharded_optimizer ? whole / outline.data : whole;
}

}  // namespace

StepBound::StepBound(const Outline& outline, const Network& network, bool halves)
    : outline_(outline), network_(network) {
  for (std::vector<std::int64_t>* sums : {&forward_, &input_, &whole_, &update_}) sums->push_back(0);
  for (int block = 0; block < outline.all_blocks(); ++block) {
    const BlockCost& cost = outline.cost(block);
    const std::int64_t sums = network.tensor_time(cost.backward_sums);
    forward_.push_back(forward_.back() + cost.forward + network.tensor_time(cost.forward_sums));
    input_.push_back(input_.back() + sums + (halves ? cost.backward_input : cost.backward));
    whole_.push_back(whole_.back() + sums +
                     (halves ? cost.backward_input + cost.backward_weight : cost.backward));
    update_.push_back(update_.back());
    for (int unit : outline.units_used[block][0])  // a unit that several blocks use counts with its first
      if (outline.units[unit].blocks.front() == block)
        update_.back() += least_share(outline, outline.units[unit].update);
  }
}

std::int64_t StepBound::message(int block, int from, int to, bool forward) const {
  if (from == to) return 0;
  const BoundaryBytes& cut = outline_.cuts[block];
  return forward ? network_.link(from, to).time(cut.activation) : network_.link(to, from).time(cut.gradient);
}

std::int64_t StepBound::of(const std::vector<int>& first_block) const {
  std::int64_t longest = 0, update = 0, there = 0, back = 0;
  const std::int64_t micro_batches = outline_.micro_batches;
  const auto over = [&](const std::vector<std::int64_t>& sums, int chunk) {
    return sums[first_block[chunk + 1]] - sums[first_block[chunk]];
  };
  for (int stage = 0; stage < outline_.stages; ++stage) {
    std::int64_t forward = 0, input = 0, whole = 0, updates = 0;
    for (int chunk = 0; chunk < outline_.all_chunks(); ++chunk) {
      if (outline_.rank_of(chunk) != stage) continue;
      forward += over(forward_, chunk);
      input += over(input_, chunk);
      whole += over(whole_, chunk);
      updates += over(update_, chunk);
    }
    longest = std::max(longest, there + std::max(micro_batches * (forward + input) + back,
                                                 micro_batches * (forward + whole)));
    update = std::max(update, updates);
    if (stage + 1 == outline_.stages) break;
    // The first chunks of the stages are the first of the model, in order.
    const int next = first_block[stage + 1];
    there += over(forward_, stage) + message(next, stage, stage + 1, true);
    back += over(input_, stage) + message(next, stage, stage + 1, false);
  }
  return longest + update;
}

std::vector<int> StepBound::improved(std::vector<int> first_block) const {
  std::int64_t best = of(first_block);
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<int> next = first_block;
    for (std::size_t cut = 1; cut + 1 < first_block.size(); ++cut)
      for (const int step : {-1, 1}) {
        std::vector<int> other = first_block;
        other[cut] += step;
        if (other[cut] <= other[cut - 1] || other[cut] >= other[cut + 1]) continue;
        const std::int64_t bound = of(other);
        if (bound >= best) continue;
        best = bound;
        next = other;
        moved = true;
      }
    first_block = next;
  }
  return first_block;
}

std::int64_t least_memory(const Outline& outline, const std::vector<int>& first_block, bool fills,
                          bool recomputed) {
  std::vector<std::int64_t> bytes(outline.stages, 0);
  std::vector<std::vector<char>> counted(outline.stages, std::vector<char>(outline.units.size(), 0));
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    const int stage = outline.rank_of(chunk);
    const std::int64_t in_flight = fills ? std::min(outline.micro_batches, outline.stages - stage) : 1;
    for (int block = first_block[chunk]; block < first_block[chunk + 1]; ++block) {
      bytes[stage] += in_flight * (recomputed ? outline.cuts[block].activation : outline.cost(block).saved);
      for (int unit : outline.units_used[block][0]) {
        if (counted[stage][unit]++ > 0) continue;
        const UnitCost& cost = outline.units[unit];
        bytes[stage] +=
            cost.values + least_share(outline, cost.state) + (outline.sharded_gradients ? 0 : cost.gradients);
      }
    }
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace mindpipe
