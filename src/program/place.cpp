#include "program/place.h"

#include <algorithm>
#include <numeric>

#include "program/moving_step.h"
#include "program/state_slots.h"
#include "program/swapped_blocks.h"
#include "program/unit_bytes.h"

namespace mindpipe {
namespace {

void grow(BoundaryBytes& buffer, const BoundaryBytes& cut, bool with_forward) {
  if (with_forward) {
    buffer.activation = std::max(buffer.activation, cut.activation);
    buffer.encoder_output = std::max(buffer.encoder_output, cut.encoder_output);
  } else {
    buffer.gradient = std::max(buffer.gradient, cut.gradient);
    buffer.encoder_output_gradient = std::max(buffer.encoder_output_gradient, cut.encoder_output_gradient);
  }
}

/// What one micro-batch keeps of a chunk for products that are put off.
std::int64_t put_off_in(const Outline& outline, int chunk) {
  std::int64_t bytes = 0;
  for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block)
    bytes += outline.cost(block).put_off;
  return bytes;
}

/// A pass fills the buffer that it writes, a message the one where it arrives.
void find_rooms(RankMemory& memory, const std::vector<Action>& list, const Outline& outline) {
  for (const Action& action : list) {
    const bool forward = is_pass(action) ? is_forward(action) : travels_forward(action.payload);
    if (action.to_buffer >= 0) {
      const int number = action.to_buffer;
      if (number >= static_cast<int>(memory.buffers.size())) memory.buffers.resize(number + 1);
      const int cut = is_pass(action) && forward ? action.last : action.first;
      grow(memory.buffers[number], outline.cuts[cut], forward);
    }
    memory.arenas = std::max(memory.arenas, action.tape + 1);
    if (!sends(action) && action.payload == Payload::unit_gradient)
      memory.bytes[static_cast<int>(MemoryClass::boundary)] += action.bytes;
  }
}

void sum_bytes(RankMemory& memory, const std::vector<Action>& list, const Outline& outline, int rank) {
  const auto at = [&](MemoryClass kind) -> std::int64_t& { return memory.bytes[static_cast<int>(kind)]; };
  for (int chunk = 0; chunk < outline.all_chunks(); ++chunk) {
    if (outline.rank_of(chunk) != rank) continue;
    memory.arena_bytes = std::max(memory.arena_bytes, bytes_beside_segments(outline, chunk));
    for (int block = outline.first_block[chunk]; block < outline.first_block[chunk + 1]; ++block)
      at(MemoryClass::workspace) = std::max(at(MemoryClass::workspace), outline.cost(block).workspace);
    for (const UnitUse& use : outline.uses_in(outline.first_block[chunk], outline.first_block[chunk + 1])) {
      if (!outline.sharded_gradients) at(MemoryClass::gradients) += accumulator_bytes(outline, use.unit);
      else if (memory.gradients.at(use).moves_out)
        at(MemoryClass::gradients) += share_bytes(outline, use.unit);
    }
  }
  StateSlots slots;
  for (int unit : outline.units_of_rank(rank)) {
    at(MemoryClass::values) += outline.units[unit].values;
    if (outline.state_on_host) slots.add(outline.units[unit].state);
    else at(MemoryClass::optimizer) += outline.units[unit].state;
  }
  at(MemoryClass::optimizer) += slots.bytes();
  for (int from = 0; outline.moves_blocks() && from < outline.stages; ++from)
    for (const int unit : units_leaving(outline, from, rank)) {
      at(MemoryClass::values) += outline.units[unit].values;
      at(MemoryClass::optimizer) += outline.units[unit].state;
    }
  for (std::int64_t slab : memory.slabs) at(MemoryClass::gradients) += slab;
  TapeSlab slab = place_tapes(list, [&](int chunk, bool) { return sizes_of_rooms(outline, chunk); });
  add_segments(slab, list,
               [&](int block) { return static_cast<std::size_t>(bytes_in_segment(outline, block)); });
  at(MemoryClass::activations) = static_cast<std::int64_t>(slab.bytes);
  memory.on_host = static_cast<std::int64_t>(slab.host_bytes);
  for (const BoundaryBytes& buffer : memory.buffers)
    at(MemoryClass::boundary) +=
        buffer.activation + buffer.encoder_output + buffer.gradient + buffer.encoder_output_gradient;
}

}  // namespace

TapeSizes sizes_of_rooms(const Outline& outline, int chunk) {
  return {static_cast<std::size_t>(bytes_beside_segments(outline, chunk)),
          static_cast<std::size_t>(put_off_in(outline, chunk))};
}

std::int64_t RankMemory::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

RankMemory memory_of(const std::vector<Action>& list, const Outline& outline, int rank,
                     const GradientTurns* turns) {
  RankMemory memory;
  if (turns != nullptr) {
    memory.slabs = turns->slabs;
    memory.gradients = turns->places;
  }
  find_rooms(memory, list, outline);
  sum_bytes(memory, list, outline, rank);
  return memory;
}

}  // namespace mindpipe
