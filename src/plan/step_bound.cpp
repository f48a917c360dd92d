#include "plan/step_bound.h"

#include <algorithm>

#include "plan/choose_tapes.h"
#include "plan/tape_bytes.h"
#include "program/partition.h"
#include "program/schedules/pass_clock.h"
#include "program/schedules/segment_turns.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

/// The part of a unit's state that one data rank has at least.
std::int64_t least_share(const Outline& outline, std::int64_t whole) {
  return outline.sharded_optimizer ? whole / outline.data : whole;
}

}  // namespace

StepBound::StepBound(const Outline& outline, const Network& network, bool halves)
    : outline_(outline), prices_(outline, network) {
  for (std::vector<std::int64_t>* sums : {&forward_, &input_, &whole_, &update_}) sums->push_back(0);
  for (int block = 0; block < outline.all_blocks(); ++block) {
    const BlockCost& cost = outline.cost(block);
    const std::int64_t sums = tensor_time(outline, network, cost.backward_sums);
    forward_.push_back(forward_.back() + cost.forward + tensor_time(outline, network, cost.forward_sums));
    input_.push_back(input_.back() + sums + (halves ? cost.backward_input : cost.backward));
    whole_.push_back(
        whole_.back() + sums +
        (halves ? std::min(cost.backward, cost.backward_input + cost.backward_weight) : cost.backward));
    update_.push_back(update_.back());
    for (int unit : outline.units_used[block][0])  // a unit that several blocks use counts with its first
      if (outline.units[unit].blocks.front() == block)
        update_.back() += least_share(outline, outline.units[unit].update);
  }
}

std::int64_t StepBound::message(int block, int from, int to, bool forward) const {
  if (from == to) return 0;
  const BoundaryBytes& cut = outline_.cuts[block];
  return forward ? prices_.message(from, to, cut.activation).lasts
                 : prices_.message(to, from, cut.gradient).lasts;
}

std::int64_t StepBound::of(const std::vector<int>& first_block) const {
  struct Sums {
    std::int64_t forward = 0, input = 0, whole = 0;
  };
  std::vector<Sums> stages(outline_.stages);
  const auto over = [&](const std::vector<std::int64_t>& sums, int chunk) {
    return sums[first_block[chunk + 1]] - sums[first_block[chunk]];
  };
  for (int chunk = 0; chunk < outline_.all_chunks(); ++chunk) {
    Sums& sums = stages[outline_.rank_of(chunk)];
    sums.forward += over(forward_, chunk);
    sums.input += over(input_, chunk);
    sums.whole += over(whole_, chunk);
  }
  std::int64_t longest = 0, there = 0, back = 0;
  const std::int64_t micro_batches = outline_.micro_batches;
  for (int stage = 0; stage < outline_.stages; ++stage) {
    const Sums& sums = stages[stage];
    longest = std::max(longest, there + std::max(micro_batches * (sums.forward + sums.input) + back,
                                                 micro_batches * (sums.forward + sums.whole)));
    if (stage + 1 == outline_.stages) break;
    // The first chunks of the stages are the first of the model, in order.
    const int next = first_block[stage + 1];
    there += over(forward_, stage) + message(next, stage, stage + 1, true);
    back += over(input_, stage) + message(next, stage, stage + 1, false);
  }
  return longest + longest_update(first_block);
}

std::int64_t StepBound::of(const Order& order) const {
  const PassClock clock(outline_, prices_);
  const std::int64_t passes = clock.run(order, {.puts_off = false}).step;
  return std::max(passes, longest_copies(order)) + longest_update(outline_.first_block);
}

std::int64_t StepBound::longest_copies(const Order& order) const {
  std::int64_t longest = 0;
  for (int stage = 0; stage < outline_.stages && swaps_blocks(outline_); ++stage) {
    const SegmentTurns turns(outline_, order[stage]);
    std::int64_t copies = 0;
    for (const SegmentLife& life : turns.lives())
      if (life.is_stashed) copies += prices_.copy_of_segment(life.block);
    longest = std::max(longest, copies);
  }
  return longest;
}

std::int64_t StepBound::longest_update(const std::vector<int>& first_block) const {
  std::vector<std::int64_t> stages(outline_.stages, 0);
  for (int chunk = 0; chunk < outline_.all_chunks(); ++chunk)
    stages[outline_.rank_of(chunk)] += update_[first_block[chunk + 1]] - update_[first_block[chunk]];
  return *std::max_element(stages.begin(), stages.end());
}

std::vector<int> StepBound::improved(std::vector<int> first_block) const {
  std::int64_t best = of(first_block);
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<int> next = first_block;
    for (std::size_t cut = 1; cut + 1 < first_block.size(); ++cut)
      for (const int step : {-1, 1}) {
        auto other = with_boundary_moved(first_block, cut, step);
        const std::int64_t bound = other ? of(*other) : best;
        if (bound >= best) continue;
        best = bound;
        next = std::move(*other);
        moved = true;
      }
    first_block = next;
  }
  return first_block;
}

namespace {

/// In bytes at least: what stages hold all the time, and beside it what the second forward of a block keeps
/// or passes work in; of each chunk a micro-batch's tape, one slot for each block that is swapped, and
/// gradients that lie in slabs, from its first backward to its last.
struct LeastBytes {
  std::vector<std::int64_t> kept, second_forward, workspace, tape, slots, in_slabs;

  LeastBytes(const Outline& outline, const std::vector<int>& first_block, const ChosenBlocks& recomputed)
      : kept(outline.stages, 0),
        second_forward(outline.stages, 0),
        workspace(outline.stages, 0),
        tape(outline.all_chunks(), 0),
        slots(outline.all_chunks(), 0),
        in_slabs(outline.all_chunks(), 0) {
    std::vector<std::vector<char>> counted(outline.stages, std::vector<char>(outline.units.size(), 0));
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
      const int stage = outline.rank_of(chunk);
      const TapeBytes bytes = tape_bytes(
          outline, first_block[chunk], first_block[chunk + 1],
          [&](int block) { return recomputed.has(block); }, true,
          [&](int block) { return is_swapped(outline, block); });
      tape[chunk] = bytes.kept;
      if (outline.sharded_gradients && outline.micro_batches > 1)  // else its blocks take turns
        for (const UnitUse& use : outline.uses_in(first_block[chunk], first_block[chunk + 1]))
          in_slabs[chunk] += accumulator_bytes(outline, use.unit);
      second_forward[stage] = std::max(second_forward[stage], bytes.most - bytes.kept);
      for (int block = first_block[chunk]; block < first_block[chunk + 1]; ++block) {
        workspace[stage] = std::max(workspace[stage], outline.cost(block).workspace);
        if (is_swapped(outline, block))
          slots[chunk] +=
              bytes_in_segment(outline, block, first_block[chunk + 1]) - outline.cost(block).split_only;
        for (const int unit : outline.units_used[block][0])
          if (counted[stage][unit]++ == 0) kept[stage] += least_held_bytes(outline, unit);
      }
    }
  }
  /// What a stage has beside tapes and gradients in slabs.
  std::int64_t beside(int stage) const { return kept[stage] + second_forward[stage] + workspace[stage]; }

  /// What gradients take in slabs on each stage, whatever the order: a chunk's are there at the same time.
  std::vector<std::int64_t> of_slabs(const Outline& outline) const {
    std::vector<std::int64_t> stages(outline.stages, 0);
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
      std::int64_t& stage = stages[outline.rank_of(chunk)];
      stage = std::max(stage, in_slabs[chunk]);
    }
    return stages;
  }

  /// What gradients take in slabs on each stage with an order. Weight gradients that are put off come in the
  /// order of the backwards.
  std::vector<std::int64_t> of_slabs(const Outline& outline, const Order& order) const {
    std::vector<std::int64_t> stages;
    for (const std::vector<Pass>& passes : order) {
      std::vector<int> made(outline.all_chunks(), 0);
      std::int64_t most = 0, now = 0;
      for (const Pass& pass : passes) {
        if (pass.kind != ActionKind::backward && pass.kind != ActionKind::backward_weight) continue;
        const int count = ++made[pass.chunk];
        if (count == 1) now += in_slabs[pass.chunk];
        if (count == outline.micro_batches) now -= in_slabs[pass.chunk];
        most = std::max(most, now);
      }
      stages.push_back(most);
    }
    return stages;
  }

  /// What tapes of an order take on each stage, second forwards among them.
  std::vector<std::int64_t> of_tapes(const Outline& outline, const Order& order) const {
    const std::vector<int> in_flight = most_in_flight(order, outline.all_chunks());
    std::vector<std::int64_t> stages;
    for (int stage = 0; stage < outline.stages; ++stage) {
      std::int64_t held = 0, most_held = 0, all_slots = 0;
      for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
        if (outline.rank_of(chunk) == stage) all_slots += slots_of_swapped(in_flight[chunk]) * slots[chunk];
      for (const Pass& pass : order[stage]) {
        const bool begins = pass.kind == ActionKind::forward,
                   ends = pass.kind == ActionKind::backward || pass.kind == ActionKind::backward_weight;
        if (begins) held += tape[pass.chunk];
        if (ends) held -= tape[pass.chunk];
        most_held = std::max(most_held, held);
      }
      stages.push_back(second_forward[stage] + all_slots + most_held);
    }
    return stages;
  }
};

}  // namespace

std::int64_t least_held_bytes(const Outline& outline, int unit) {
  const UnitCost& cost = outline.units[unit];
  return cost.values + (outline.state_on_host ? 0 : least_share(outline, cost.state)) +
         (outline.sharded_gradients ? 0 : accumulator_bytes(outline, unit));
}

std::vector<int> most_in_flight(const Order& order, int chunks) {
  std::vector<int> held(chunks, 0), most(chunks, 0);
  for (const std::vector<Pass>& passes : order)
    for (const Pass& pass : passes) {
      if (pass.kind == ActionKind::forward) most[pass.chunk] = std::max(most[pass.chunk], ++held[pass.chunk]);
      if (pass.kind == ActionKind::backward || pass.kind == ActionKind::backward_weight) --held[pass.chunk];
    }
  return most;
}

std::vector<std::int64_t> bytes_beside_tapes(const Outline& outline) {
  const LeastBytes least(outline, outline.first_block, {});
  std::vector<std::int64_t> bytes = least.of_slabs(outline);
  for (int stage = 0; stage < outline.stages; ++stage)
    bytes[stage] += least.kept[stage] + least.workspace[stage];
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
    bytes[outline.rank_of(chunk)] +=
        bytes_of_buffers(outline, outline.first_block[chunk], outline.first_block[chunk + 1]);
  return bytes;
}

std::vector<std::int64_t> least_beside_tapes(const Outline& outline, const ChosenBlocks& recomputed) {
  const LeastBytes least(outline, outline.first_block, recomputed);
  std::vector<std::int64_t> bytes = least.of_slabs(outline);
  for (int stage = 0; stage < outline.stages; ++stage) bytes[stage] += least.beside(stage);
  return bytes;
}

std::int64_t least_memory_of_any_cut(const Outline& outline, const ChosenBlocks& recomputed) {
  std::int64_t all = 0;
  for (int unit = 0; unit < static_cast<int>(outline.units.size()); ++unit)
    all += least_held_bytes(outline, unit);
  for (int block = 0; block < outline.all_blocks(); ++block)
    if (!recomputed.has(block) && !is_swapped(outline, block))
      all += std::max<std::int64_t>(
          0, outline.cost(block).saved - outline.cost(block).split_only - bytes_leaving(outline, block));
  return all / outline.stages;
}

std::int64_t least_memory(const Outline& outline, const std::vector<int>& first_block, bool fills,
                          const ChosenBlocks& recomputed) {
  const LeastBytes bytes(outline, first_block, recomputed);
  std::vector<std::int64_t> stages = bytes.of_slabs(outline);
  const bool is_looped = outline.rank_of_chunk == looped_chunks(outline.stages, outline.chunks);
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    const int stage = outline.rank_of(chunk);
    const bool is_last = chunk + outline.stages >= outline.all_chunks();
    const std::int64_t in_flight = fills ? std::min(outline.micro_batches, outline.stages - stage)
                                   : is_last || !is_looped ? 1
                                                           : std::min(outline.micro_batches, outline.stages);
    stages[stage] +=
        in_flight * bytes.tape[chunk] + slots_of_swapped(static_cast<int>(in_flight)) * bytes.slots[chunk];
  }
  for (int stage = 0; stage < outline.stages; ++stage) stages[stage] += bytes.beside(stage);
  return *std::max_element(stages.begin(), stages.end());
}

std::vector<std::int64_t> least_tapes(const Outline& outline, const Order& order,
                                      const ChosenBlocks& recomputed) {
  return LeastBytes(outline, outline.first_block, recomputed).of_tapes(outline, order);
}

bool has_all_gradients_at_once(const Outline& outline, const Order& order) {
  const std::vector<std::int64_t> slabs =
      LeastBytes(outline, outline.first_block, {}).of_slabs(outline, order);
  for (int stage = 0; stage < outline.stages; ++stage) {
    std::int64_t all = 0;
    for (int chunk = 0; chunk < outline.all_chunks(); ++chunk)
      if (outline.rank_of(chunk) == stage)
        for (const UnitUse& use : outline.uses_in(outline.first_block[chunk], outline.first_block[chunk + 1]))
          all += accumulator_bytes(outline, use.unit);
    if (slabs[stage] < all) return false;
  }
  return true;
}

std::vector<std::int64_t> least_memory(const Outline& outline, const Order& order,
                                       const ChosenBlocks& recomputed) {
  const LeastBytes bytes(outline, outline.first_block, recomputed);
  const std::vector<std::int64_t> slabs = bytes.of_slabs(outline, order);
  std::vector<std::int64_t> stages = bytes.of_tapes(outline, order);
  for (int stage = 0; stage < outline.stages; ++stage)
    stages[stage] += bytes.kept[stage] + bytes.workspace[stage] + slabs[stage];
  return stages;
}

}  // namespace mindpipe
